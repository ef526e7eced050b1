#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void say(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
}

/* One word, whatever the text holds. */
static void put_word(const char *text)
{
	putchar(' ');
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;
		if (byte <= ' ' || byte >= 0x7f || byte == '%')
			printf("%%%02x", byte);
		else
			putchar(byte);
	}
}

void say_removed(const char *rule, const char *path)
{
	fputs("removed", stdout);
	put_word(rule);
	put_word(path);
	putchar('\n');
}

void refuse(const char *path, const char *reason)
{
	fputs("refused", stdout);
	put_word(path);
	put_word(reason);
	putchar('\n');
	fflush(stdout);
	exit(EXIT_REFUSED);
}

void fail(const char *step)
{
	const char *name = strerrorname_np(errno);
	printf("failed %s", name ? name : "EIO");
	put_word(step);
	putchar('\n');
	fflush(stdout);
	exit(EXIT_FAILED);
}

void *must(void *memory)
{
	if (!memory) {
		errno = ENOMEM;
		fail("allocate memory");
	}
	return memory;
}
