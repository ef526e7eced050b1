/*
 * One output stream of a command: a pipe that is always read and a log that is bounded. The program is never stopped or
 * killed for what it prints: beyond the cap, or on a full disk, bytes are counted and dropped.
 */
#ifndef AETHER_OUTPUT_H
#define AETHER_OUTPUT_H

#include "loop.h"

#include <stddef.h>
#include <stdint.h>

struct output {
	struct source pipe; /* read end; closed when every writer has gone */
	int log_fd;         /* -1 until the first byte, unless the log was made at the start */
	uint64_t total, stored, limit;
	int full; /* nothing more is stored: a log has no holes */
};

enum pump_result { PUMP_MORE, PUMP_EMPTY, PUMP_CLOSED };

/* Makes `<exec><suffix>` in `directory`, which must not exist. The descriptor, or -1 with errno. */
int output_make_log(int directory, const char *exec, const char *suffix);
/* Reads once. `make_log` is called before the first stored byte when there is no log yet. */
enum pump_result output_pump(struct output *output, int directory, const char *exec, const char *suffix);
/* Takes what lies in the pipe now, and no more than that: a writer in the background cannot keep this going. */
void output_drain(struct output *output, int directory, const char *exec, const char *suffix);
void output_close(struct output *output);
/* Gives the shared read buffer back; it comes again with the next read. */
void output_release_scratch(void);

#endif
