/* The bodies of requests, checked. Views into the frame: valid until it is consumed. */
#ifndef AETHER_REQUEST_H
#define AETHER_REQUEST_H

#include "wire.h"

#include <stddef.h>
#include <stdint.h>

enum stdin_mode { STDIN_NONE, STDIN_OPEN, STDIN_BYTES };

struct start_request {
	const char *exec;
	const char *pairs; /* arg=, env=, cwd=, user=: read by the child */
	size_t pairs_length;
	enum stdin_mode stdin_mode;
	const uint8_t *stdin_bytes;
	size_t stdin_length;
	uint64_t timeout_ms; /* 0: none */
	uint64_t limit_out, limit_err;
	uint64_t open_files; /* 0: what this sandbox gives */
	int hold, roll;      /* what happens when a log is full, see output.h */
	uint16_t rows, columns; /* of its terminal; 0: none */
};

struct stdin_request {
	const char *exec;
	uint64_t offset;
	int close;
	const uint8_t *bytes;
	size_t length;
};

struct signal_request {
	const char *exec;
	int signal_number;
	int tree;
	int since_input; /* of the tree only what came after the newest input, never the leader */
};

struct resize_request {
	const char *exec;
	uint16_t rows, columns;
};

/* What readers of one stream have done with its log. */
struct window_request {
	const char *exec;
	int is_err;
	uint64_t discard; /* bytes below are needed no more */
	int hold;
};

struct dial_request {
	const char *path; /* of a unix socket, or NULL */
	uint16_t port;    /* on the loopback */
};

/* Each: 0, or -1 when the body is not what PROTOCOL.md says. */
int request_parse_start(const uint8_t *body, size_t length, struct start_request *out);
int request_parse_stdin(const uint8_t *body, size_t length, struct stdin_request *out);
int request_parse_signal(const uint8_t *body, size_t length, struct signal_request *out);
int request_parse_resize(const uint8_t *body, size_t length, struct resize_request *out);
int request_parse_window(const uint8_t *body, size_t length, struct window_request *out);
int request_parse_life(const uint8_t *body, size_t length, uint64_t *seconds);
int request_parse_clock(const uint8_t *body, size_t length, uint64_t *stopped);
int request_parse_dial(const uint8_t *body, size_t length, struct dial_request *out);
int request_parse_files(const uint8_t *body, size_t length, const char **user);
int request_parse_query(const uint8_t *body, size_t length, const char **exec);

/* Exactly `ex-` and 24 lower-case hex digits: it becomes a file name and a cgroup's name. */
int exec_id_valid(const char *text);

#endif
