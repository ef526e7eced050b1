#include "frame.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	READER_START_BYTES = 1024, /* most frames are shorter: a sandbox's agent stays small */
	SEND_STALL_MS = 1000,      /* how long a frame that is half sent may wait for its reader */
};

static void put_u16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void put_u32(uint8_t *at, uint32_t value)
{
	put_u16(at, (uint16_t)value);
	put_u16(at + 2, (uint16_t)(value >> 16));
}

static uint16_t get_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get_u32(const uint8_t *at)
{
	return get_u16(at) | (uint32_t)get_u16(at + 2) << 16;
}

void frame_reader_init(struct frame_reader *reader)
{
	*reader = (struct frame_reader){0};
}

void frame_reader_free(struct frame_reader *reader)
{
	free(reader->buffer);
	frame_reader_init(reader);
}

/* Makes room for the frame whose header is at the front, or for a header. 0, or -1 with errno. */
static int make_room(struct frame_reader *reader)
{
	size_t wanted = READER_START_BYTES;
	if (reader->used >= FRAME_HEADER_BYTES) {
		uint32_t length = get_u32(reader->buffer);
		if (length > FRAME_BODY_MAX) {
			errno = EMSGSIZE;
			return -1;
		}
		if (FRAME_HEADER_BYTES + (size_t)length > wanted)
			wanted = FRAME_HEADER_BYTES + (size_t)length;
	}
	if (wanted <= reader->capacity)
		return 0;
	uint8_t *grown = realloc(reader->buffer, wanted);
	if (!grown)
		return -1;
	reader->buffer = grown;
	reader->capacity = wanted;
	return 0;
}

int frame_reader_fill(struct frame_reader *reader, int fd)
{
	if (make_room(reader) < 0)
		return -1;
	size_t room = reader->capacity - reader->used;
	if (room == 0)
		return 1; /* a whole frame waits: the caller has not taken it yet */
	ssize_t got = read(fd, reader->buffer + reader->used, room);
	if (got > 0) {
		reader->used += (size_t)got;
		return make_room(reader) < 0 ? -1 : 1;
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got == 0)
		errno = 0;
	return -1;
}

int frame_reader_next(const struct frame_reader *reader, struct frame_header *header, const uint8_t **body)
{
	if (reader->used < FRAME_HEADER_BYTES)
		return 0;
	const uint8_t *at = reader->buffer;
	uint32_t length = get_u32(at);
	if (length > FRAME_BODY_MAX || reader->used - FRAME_HEADER_BYTES < length)
		return 0;
	*header = (struct frame_header){
		.length = length,
		.type = get_u16(at + 4),
		.flags = get_u16(at + 6),
		.id = get_u32(at + 8) | (uint64_t)get_u32(at + 12) << 32,
	};
	*body = at + FRAME_HEADER_BYTES;
	return 1;
}

void frame_reader_consume(struct frame_reader *reader)
{
	struct frame_header header;
	const uint8_t *body;
	if (!frame_reader_next(reader, &header, &body))
		return;
	size_t whole = FRAME_HEADER_BYTES + (size_t)header.length;
	reader->used -= whole;
	memmove(reader->buffer, reader->buffer + whole, reader->used);
}

/* Waits until a half-sent frame can go on. A reader that stays away loses its connection, never the sender's loop. */
static int wait_writable(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
	int ready = poll(&poll_fd, 1, SEND_STALL_MS);
	if (ready > 0 || (ready < 0 && errno == EINTR))
		return 0;
	if (ready == 0)
		errno = ETIMEDOUT;
	return -1;
}

int frame_send(int fd, uint16_t type, uint64_t id, const void *body, size_t length)
{
	if (length > FRAME_BODY_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	uint8_t header[FRAME_HEADER_BYTES];
	put_u32(header, (uint32_t)length);
	put_u16(header + 4, type);
	put_u16(header + 6, 0);
	put_u32(header + 8, (uint32_t)id);
	put_u32(header + 12, (uint32_t)(id >> 32));

	size_t sent = 0, whole = sizeof header + length;
	while (sent < whole) {
		size_t from_body = sent > sizeof header ? sent - sizeof header : 0;
		struct iovec parts[2] = {
			{header + (sent - from_body), sizeof header - (sent - from_body)},
			{(void *)((uintptr_t)body + from_body), length - from_body},
		};
		struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
		ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);
		if (n >= 0)
			sent += (size_t)n;
		else if (errno == EINTR)
			continue;
		else if (errno != EAGAIN || sent == 0 || wait_writable(fd) < 0)
			return -1;
	}
	return 0;
}

const char *kv_next(const char *at, const char *end, const char **key, size_t *key_length, const char **value)
{
	if (at >= end)
		return NULL;
	const char *stop = memchr(at, '\0', (size_t)(end - at));
	if (!stop)
		return NULL;
	const char *equals = memchr(at, '=', (size_t)(stop - at));
	if (!equals)
		return NULL;
	*key = at;
	*key_length = (size_t)(equals - at);
	*value = equals + 1;
	return stop + 1;
}

const char *kv_get(const void *body, size_t length, const char *key)
{
	const char *at = body, *end = at + length, *found, *value;
	size_t found_length, key_length = strlen(key);
	while ((at = kv_next(at, end, &found, &found_length, &value)))
		if (found_length == key_length && memcmp(found, key, key_length) == 0)
			return value;
	return NULL;
}

static int parse_u64(const char *text, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;
	if (!text || !*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		uint64_t digit = (uint64_t)(*text - '0');
		if (value > (max - digit) / 10 || digit > max)
			return -1;
		value = value * 10 + digit;
	}
	*out = value;
	return 0;
}

int kv_get_u64(const void *body, size_t length, const char *key, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value;
	if (parse_u64(kv_get(body, length, key), max, &value) < 0 || value < min) {
		errno = EINVAL;
		return -1;
	}
	*out = value;
	return 0;
}
