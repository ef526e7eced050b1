/*
 * A worker's end of its connection: blocking, one request at a time. When the Edge has gone every call says so by
 * `CHANNEL_GONE`, and the worker cleans up and ends.
 */
#ifndef AETHER_FILES_CHANNEL_H
#define AETHER_FILES_CHANNEL_H

#include "files_wire.h"

#include <stddef.h>
#include <stdint.h>

enum channel_result { CHANNEL_OK = 0, CHANNEL_GONE = -1, CHANNEL_MALFORMED = -2 };

struct channel_frame {
	uint16_t type;
	uint64_t id;
	const uint8_t *body; /* ended by a NUL that is not counted; valid until the next frame is received */
	size_t length;
};

void channel_open(int fd);
/* Waits for the next frame. Answers carry its id. */
enum channel_result channel_receive(struct channel_frame *frame);
enum channel_result channel_answer(uint16_t type, const void *head, size_t head_length, const void *tail, size_t tail_length);
/* 1 when the other side has closed: long work without a frame asks now and then. */
int channel_hung_up(void);
/* Waits until `fd` is readable. -1 when the other side closed or says something first. */
int channel_wait(int fd);

/* FAILED with errno; with another reason; about a path. CHANNEL_OK when it was sent. */
enum channel_result channel_fail(int error_number);
/* Ahead of a failure that leaves something done. */
enum channel_result channel_partial(uint64_t bytes, uint64_t entries);
enum channel_result channel_fail_at(enum file_reason reason, int error_number, const char *path);
enum channel_result channel_end(uint64_t bytes, uint64_t entries, uint64_t omitted);

/* Bytes of a stream, gathered into DATA frames of one size so that a reader can ask for them by offset. */
enum channel_result stream_write(const void *bytes, size_t length);
/* Room for at least `least` bytes of the stream, to be filled in place; sets *room. NULL: the Edge has gone. */
uint8_t *stream_room(size_t least, size_t *room);
enum channel_result stream_fill(size_t length);
enum channel_result stream_flush(void);
/* Forgets what was not sent. */
void stream_begin(void);
uint64_t stream_total(void);

/* Bytes that come in as CHUNK frames. */
struct upload {
	const uint8_t *at;
	size_t left;
	uint64_t total;
	int committed; /* COMMIT came: nothing follows */
	enum channel_result broken;
};

void upload_begin(struct upload *upload);
/* A view on the next bytes, up to `most`; 0 at the end or when the connection broke (`broken`). */
size_t upload_next(struct upload *upload, size_t most, const uint8_t **bytes);
/* FAILED at once, since whoever sends gigabytes should hear of it before the end; then takes what still comes, so that the next request is understood. */
enum channel_result upload_fail(struct upload *upload, enum file_reason reason, int error_number, const char *path);

#endif
