/*
 * One output stream of a command: a pipe or a terminal that is read, and a log that is bounded. The program is never killed
 * for what it prints. Beyond the cap, or on a full disk, bytes are counted and dropped; while the stream is held for a
 * reader, nothing is read from a program whose log is full, until the reader has moved on.
 */
#ifndef AETHER_OUTPUT_H
#define AETHER_OUTPUT_H

#include "loop.h"

#include <stddef.h>
#include <stdint.h>

struct output {
	struct source pipe; /* read end, or master of the terminal; closed when every writer has gone */
	int log_fd;         /* -1 until the first byte, unless the log was made at the start */
	/* The log holds the bytes from `discarded` to `stored`, at most `limit` of them. */
	uint64_t total, stored, discarded, limit;
	uint64_t punched; /* bytes below take no space on disk any more */
	uint64_t due;     /* the end of the command is told when `total` has come to this; 0: at once */
	uint8_t hold;     /* when the log is full, wait for the reader */
	uint8_t roll;     /* when it is full and not held, drop the oldest bytes instead of the newest */
	uint8_t was_held;
	uint8_t drop;     /* enum drop_reason. Once set nothing more is stored: a log has no holes */
	uint8_t is_terminal;
};

enum pump_result { PUMP_MORE, PUMP_EMPTY, PUMP_CLOSED, PUMP_HELD };

/* Makes `<exec><suffix>` in `directory`, which must not exist. The descriptor, or -1 with errno. */
int output_make_log(int directory, const char *exec, const char *suffix);
/* Reads once. `make_log` is called before the first stored byte when there is no log yet. A held stream is not watched. */
enum pump_result output_pump(struct output *output, int directory, const char *exec, const char *suffix);
/*
 * Takes what lies in the pipe now, and no more than that: a writer in the background cannot keep this going. 1 when some of
 * it has to wait for a reader: then output_is_due says when the last of it is in the log.
 */
int output_drain(struct output *output, int directory, const char *exec, const char *suffix);
int output_is_due(struct output *output, int directory, const char *exec, const char *suffix);
/* A reader needs nothing below `discard`; `hold` is wanted from now on or not. Reading goes on as far as that allows. */
void output_set_window(struct output *output, uint64_t discard, int hold);
void output_close(struct output *output);
/* Gives the shared read buffer back; it comes again with the next read. */
void output_release_scratch(void);

#endif
