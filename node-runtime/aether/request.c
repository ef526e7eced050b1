#include "request.h"

#include "frame.h"
#include "limits.h"

#include <signal.h>
#include <string.h>
#include <sys/un.h>

static const uint64_t MS_PER_WEEK = 7ull * 24 * 3600 * 1000;
static const uint64_t OUTPUT_LIMIT_MAX = 1ull << 40;
static const uint64_t OPEN_FILES_MAX = 1ull << 30; /* the kernel's own bound of fs.nr_open */

int exec_id_valid(const char *text)
{
	if (strncmp(text, "ex-", 3) != 0)
		return 0;
	for (int i = 3; i < EXEC_ID_LENGTH; i++)
		if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
			return 0;
	return text[EXEC_ID_LENGTH] == '\0';
}

/* Splits at the empty string that ends the pairs. 0, or -1 when it is missing or a pair is not `key=value`. */
static int split(const uint8_t *body, size_t length, size_t *pairs_length, const uint8_t **tail, size_t *tail_length)
{
	const char *at = (const char *)body, *end = at + length, *key, *value;
	size_t key_length;
	while (at < end && *at != '\0') {
		at = kv_next(at, end, &key, &key_length, &value);
		if (!at)
			return -1;
	}
	if (at >= end)
		return -1;
	*pairs_length = (size_t)(at - (const char *)body);
	*tail = (const uint8_t *)at + 1;
	*tail_length = (size_t)(end - at) - 1;
	return 0;
}

static int get_exec(const void *pairs, size_t length, const char **exec)
{
	*exec = kv_get(pairs, length, "exec");
	return *exec && exec_id_valid(*exec) ? 0 : -1;
}

static int get_flag(const void *pairs, size_t length, const char *key, int *out)
{
	uint64_t value;
	if (kv_get_u64(pairs, length, key, 0, 1, &value) < 0)
		return -1;
	*out = (int)value;
	return 0;
}

/* As get_flag, but 0 when the key is not there. */
static int get_optional_flag(const void *pairs, size_t length, const char *key, int *out)
{
	*out = 0;
	return kv_get(pairs, length, key) ? get_flag(pairs, length, key, out) : 0;
}

/* The kernel keeps 16 bits of each; a terminal of no rows or columns is one of unknown size, which programs take badly. */
static int get_size(const void *pairs, size_t length, uint16_t *rows, uint16_t *columns)
{
	uint64_t height, width;
	if (kv_get_u64(pairs, length, "rows", 1, UINT16_MAX, &height) < 0 || kv_get_u64(pairs, length, "columns", 1, UINT16_MAX, &width) < 0)
		return -1;
	*rows = (uint16_t)height;
	*columns = (uint16_t)width;
	return 0;
}

static int get_stdin_mode(const void *pairs, size_t length, enum stdin_mode *mode)
{
	const char *text = kv_get(pairs, length, "stdin");
	if (!text)
		return -1;
	if (strcmp(text, "none") == 0)
		*mode = STDIN_NONE;
	else if (strcmp(text, "open") == 0)
		*mode = STDIN_OPEN;
	else if (strcmp(text, "bytes") == 0)
		*mode = STDIN_BYTES;
	else
		return -1;
	return 0;
}

int request_parse_start(const uint8_t *body, size_t length, struct start_request *out)
{
	size_t pairs;
	*out = (struct start_request){.pairs = (const char *)body};
	if (split(body, length, &pairs, &out->stdin_bytes, &out->stdin_length) < 0)
		return -1;
	out->pairs_length = pairs;
	if (get_exec(body, pairs, &out->exec) < 0 || get_stdin_mode(body, pairs, &out->stdin_mode) < 0)
		return -1;
	if (out->stdin_length > 0 && out->stdin_mode != STDIN_BYTES)
		return -1;
	if (!kv_get(body, pairs, "arg"))
		return -1;
	if (kv_get_u64(body, pairs, "timeoutMs", 0, MS_PER_WEEK, &out->timeout_ms) < 0)
		return -1;
	if (kv_get_u64(body, pairs, "limitStdout", 0, OUTPUT_LIMIT_MAX, &out->limit_out) < 0)
		return -1;
	if (kv_get_u64(body, pairs, "limitStderr", 0, OUTPUT_LIMIT_MAX, &out->limit_err) < 0)
		return -1;
	if (kv_get(body, pairs, "openFiles") && kv_get_u64(body, pairs, "openFiles", 1, OPEN_FILES_MAX, &out->open_files) < 0)
		return -1;
	if (get_optional_flag(body, pairs, "hold", &out->hold) < 0 || get_optional_flag(body, pairs, "roll", &out->roll) < 0)
		return -1;
	if (!kv_get(body, pairs, "rows") && !kv_get(body, pairs, "columns"))
		return 0;
	return get_size(body, pairs, &out->rows, &out->columns);
}

int request_parse_stdin(const uint8_t *body, size_t length, struct stdin_request *out)
{
	size_t pairs;
	*out = (struct stdin_request){0};
	if (split(body, length, &pairs, &out->bytes, &out->length) < 0)
		return -1;
	if (get_exec(body, pairs, &out->exec) < 0 || get_flag(body, pairs, "close", &out->close) < 0)
		return -1;
	return kv_get_u64(body, pairs, "offset", 0, UINT64_MAX / 2, &out->offset);
}

int request_parse_signal(const uint8_t *body, size_t length, struct signal_request *out)
{
	uint64_t number;
	*out = (struct signal_request){0};
	if (get_exec(body, length, &out->exec) < 0 || get_flag(body, length, "tree", &out->tree) < 0)
		return -1;
	if (kv_get_u64(body, length, "signal", 1, SIGNAL_MAX, &number) < 0)
		return -1;
	out->signal_number = (int)number;
	if (out->tree && out->signal_number != SIGKILL)
		return -1;
	if (get_optional_flag(body, length, "sinceInput", &out->since_input) < 0)
		return -1;
	return out->since_input && !out->tree ? -1 : 0;
}

int request_parse_resize(const uint8_t *body, size_t length, struct resize_request *out)
{
	*out = (struct resize_request){0};
	return get_exec(body, length, &out->exec) < 0 ? -1 : get_size(body, length, &out->rows, &out->columns);
}

int request_parse_window(const uint8_t *body, size_t length, struct window_request *out)
{
	*out = (struct window_request){0};
	if (get_exec(body, length, &out->exec) < 0 || get_flag(body, length, "err", &out->is_err) < 0 || get_flag(body, length, "hold", &out->hold) < 0)
		return -1;
	return kv_get_u64(body, length, "discard", 0, UINT64_MAX / 2, &out->discard);
}

int request_parse_life(const uint8_t *body, size_t length, uint64_t *seconds)
{
	return kv_get_u64(body, length, "seconds", 0, LIFE_SECONDS_LIMIT - 1, seconds);
}

int request_parse_clock(const uint8_t *body, size_t length, uint64_t *stopped)
{
	return kv_get_u64(body, length, "stopped", 0, 1, stopped);
}

int request_parse_dial(const uint8_t *body, size_t length, struct dial_request *out)
{
	uint64_t port;
	*out = (struct dial_request){.path = kv_get(body, length, "unix")};
	if (out->path)
		return out->path[0] == '/' && strlen(out->path) < sizeof((struct sockaddr_un *)0)->sun_path ? 0 : -1;
	if (kv_get_u64(body, length, "port", 1, UINT16_MAX, &port) < 0)
		return -1;
	out->port = (uint16_t)port;
	return 0;
}

int request_parse_query(const uint8_t *body, size_t length, const char **exec)
{
	return get_exec(body, length, exec);
}

int request_parse_files(const uint8_t *body, size_t length, const char **user)
{
	*user = kv_get(body, length, "user");
	return *user ? 0 : -1;
}
