#include "files_request.h"

#include "frame.h"

#include <string.h>

enum { MODE_MOST = 07777 };

const char *request_text(const struct channel_frame *frame, const char *key)
{
	return kv_get(frame->body, frame->length, key);
}

int request_number(const struct channel_frame *frame, const char *key, uint64_t absent, uint64_t most, uint64_t *out)
{
	*out = absent;
	return request_text(frame, key) ? kv_get_u64(frame->body, frame->length, key, 0, most, out) : 0;
}

int request_flag(const struct channel_frame *frame, const char *key)
{
	const char *text = request_text(frame, key);
	return text && strcmp(text, "1") == 0;
}

int request_mode(const struct channel_frame *frame, mode_t absent, mode_t *out)
{
	uint64_t mode;
	*out = absent;
	if (!request_text(frame, "mode"))
		return 0;
	if (request_number(frame, "mode", 0, MODE_MOST, &mode) < 0)
		return -1;
	*out = (mode_t)mode;
	return 0;
}
