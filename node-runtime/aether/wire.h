/*
 * Aether's half of node-runtime/launcher/PROTOCOL.md: numbers of frames and codes, and the bodies that leave a sandbox.
 * Bodies have fixed sizes, so that the Edge parses nothing else that comes from inside. client side: wire.ts.
 */
#ifndef AETHER_WIRE_H
#define AETHER_WIRE_H

#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "bodies are written as they lie in memory: little-endian machines only"
#endif

enum { EXEC_ID_LENGTH = 27, EXEC_ID_BYTES = 32 };

enum frame_type {
	FRAME_PING = 1,
	FRAME_START = 2,
	FRAME_STDIN = 3,
	FRAME_SIGNAL = 4,
	FRAME_QUERY = 5,
	FRAME_RESIZE = 6,
	FRAME_WINDOW = 7,
	FRAME_LIFE = 8,
	FRAME_DIAL = 9,
	FRAME_CLOCK = 10,
	FRAME_FILES = 16,
	FRAME_PONG = 65,
	FRAME_STARTED = 66,
	FRAME_START_FAILED = 67,
	FRAME_STDIN_AT = 68,
	FRAME_SIGNALED = 69,
	FRAME_UNKNOWN = 70,
	FRAME_ERROR = 71,
	FRAME_DIALED = 72,
	FRAME_PROGRESS = 96,
	FRAME_EXIT = 97,
};

enum start_failure {
	FAILED_NOT = 0,
	FAILED_USER = 1,
	FAILED_CWD = 2,
	FAILED_NOT_FOUND = 3,
	FAILED_NOT_EXECUTABLE = 4,
	FAILED_KNOWN = 5,
	FAILED_PIDS = 6,
	FAILED_NO_SPACE = 7,
	FAILED_OTHER = 8,
	FAILED_BUSY = 9,
};

enum wire_error {
	ERROR_MALFORMED = 1,
	ERROR_UNKNOWN_EXEC = 2,
	ERROR_STDIN_GAP = 3,
	ERROR_STDIN_BUSY = 4,
	ERROR_STDIN_CLOSED = 5,
};

enum end_reason {
	REASON_ENDED = 0,
	REASON_TIMEOUT = 1,
	REASON_OOM = 2,
	REASON_KILLED = 3,
};

struct started_body {
	int32_t pid;
	uint32_t zero;
	uint64_t started_at_ms;
};

struct start_failed_body {
	uint16_t code;
	uint16_t zero;
	int32_t error_number;
	char exec[EXEC_ID_BYTES];
};

struct error_body {
	uint16_t code;
	uint16_t zero;
	int32_t error_number;
};

/* Why bytes of a stream were dropped from some offset on. */
enum drop_reason {
	DROP_NONE = 0,
	DROP_LIMIT = 1,    /* the log is as long as it may be */
	DROP_RELEASED = 2, /* it was held back for a reader, and then no longer */
	DROP_NO_SPACE = 3, /* the host's disk is full */
};

/* The log of a stream holds the bytes from `discarded` to `stored`. */
struct progress_body {
	char exec[EXEC_ID_BYTES];
	uint64_t total_out, stored_out, discarded_out, total_err, stored_err, discarded_err;
	uint64_t started_at_ms;
	uint8_t drop_out, drop_err, zero[6];
};

struct exit_body {
	struct progress_body progress;
	uint64_t ended_at_ms;
	int32_t wait_status;
	uint8_t reason, pipes_open;
	uint16_t oom_kills; /* processes of it that the kernel killed for memory, as far as is known */
};

struct dialed_body {
	int32_t error_number; /* 0: what follows on this connection is the other side's bytes */
};

_Static_assert(sizeof(struct started_body) == 16, "STARTED");
_Static_assert(sizeof(struct start_failed_body) == 40, "START_FAILED");
_Static_assert(sizeof(struct error_body) == 8, "ERROR");
_Static_assert(sizeof(struct progress_body) == 96, "PROGRESS");
_Static_assert(sizeof(struct exit_body) == 112, "EXIT");
_Static_assert(sizeof(struct dialed_body) == 4, "DIALED");

#endif
