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
	FRAME_PONG = 65,
	FRAME_STARTED = 66,
	FRAME_START_FAILED = 67,
	FRAME_STDIN_AT = 68,
	FRAME_SIGNALED = 69,
	FRAME_UNKNOWN = 70,
	FRAME_ERROR = 71,
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

struct progress_body {
	char exec[EXEC_ID_BYTES];
	uint64_t total_out, stored_out, total_err, stored_err;
	uint64_t started_at_ms;
};

struct exit_body {
	struct progress_body progress;
	uint64_t ended_at_ms;
	int32_t wait_status;
	uint8_t reason, pipes_open;
	uint16_t zero;
};

_Static_assert(sizeof(struct started_body) == 16, "STARTED");
_Static_assert(sizeof(struct start_failed_body) == 40, "START_FAILED");
_Static_assert(sizeof(struct error_body) == 8, "ERROR");
_Static_assert(sizeof(struct progress_body) == 72, "PROGRESS");
_Static_assert(sizeof(struct exit_body) == 88, "EXIT");

#endif
