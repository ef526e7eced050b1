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
};

/* Each: 0, or -1 when the body is not what PROTOCOL.md says. */
int request_parse_start(const uint8_t *body, size_t length, struct start_request *out);
int request_parse_stdin(const uint8_t *body, size_t length, struct stdin_request *out);
int request_parse_signal(const uint8_t *body, size_t length, struct signal_request *out);
int request_parse_query(const uint8_t *body, size_t length, const char **exec);

/* Exactly `ex-` and 24 lower-case hex digits: it becomes a file name and a cgroup's name. */
int exec_id_valid(const char *text);

#endif
