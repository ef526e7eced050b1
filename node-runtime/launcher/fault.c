#include "fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *code_of(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
		return CODE_NO_SPACE;
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EAGAIN:
	case EUSERS:
		return CODE_FULL;
	default:
		return CODE_FAILED;
	}
}

int fault_errno(struct fault *fault, const char *step)
{
	int error = errno;
	return fault_set(fault, code_of(error), step, error, "%s: %s", step, strerror(error));
}

int fault_set(struct fault *fault, const char *code, const char *step, int error, const char *format, ...)
{
	fault->code = code;
	fault->step = step;
	fault->error = error;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(fault->message, sizeof fault->message, format, arguments);
	va_end(arguments);
	return -1;
}
