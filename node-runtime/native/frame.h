/*
 * Frames of the two native channels (node-runtime/launcher/PROTOCOL.md): a 16-byte header, then `length` bytes.
 * Bodies from the Edge are NUL-terminated `key=value` strings.
 */
#ifndef DSEC_FRAME_H
#define DSEC_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum { FRAME_HEADER_BYTES = 16, FRAME_BODY_MAX = 1 << 20 };

struct frame_header {
	uint32_t length;
	uint16_t type;
	uint16_t flags;
	uint64_t id;
};

/* Collects bytes of one stream connection into whole frames. Memory grows to the largest frame seen, at most the maximum. */
struct frame_reader {
	uint8_t *buffer;
	size_t used, capacity;
};

void frame_reader_init(struct frame_reader *reader);
void frame_reader_free(struct frame_reader *reader);
/* Reads once from `fd`. 1: something came. 0: would block. -1: end of stream, error or oversized frame (errno; 0 at end). */
int frame_reader_fill(struct frame_reader *reader, int fd);
/* 1 and a view on the next whole frame, valid until frame_reader_consume; 0 when none is complete. */
int frame_reader_next(const struct frame_reader *reader, struct frame_header *header, const uint8_t **body);
void frame_reader_consume(struct frame_reader *reader);

/*
 * Sends header and body with one sendmsg, MSG_NOSIGNAL. 0, or -1 with errno. EAGAIN: nothing was sent, the frame may be sent
 * later. Any other errno: the connection is of no more use. A short write waits at most a second for its reader (ETIMEDOUT).
 */
int frame_send(int fd, uint16_t type, uint64_t id, const void *body, size_t length);

/* Walks `key=value\0` strings. Returns the next position, or NULL at the end or on a string without NUL or '='. */
const char *kv_next(const char *at, const char *end, const char **key, size_t *key_length, const char **value);
/* First value of `key`, or NULL. */
const char *kv_get(const void *body, size_t length, const char *key);
/* Decimal value of `key` in [min, max]; 0 and *out, or -1 with EINVAL when it is missing, malformed or out of range. */
int kv_get_u64(const void *body, size_t length, const char *key, uint64_t min, uint64_t max, uint64_t *out);

#endif
