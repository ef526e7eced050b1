/*
 * Standard input of a command. Bytes have offsets, so that a repeated message adds nothing; what the pipe does not take
 * yet is kept, one message at a time, and the answer waits: that is the sender's back-pressure. A reader that closed its
 * end swallows the rest without an error, as a shell's pipeline does.
 */
#ifndef AETHER_INPUT_H
#define AETHER_INPUT_H

#include "connection.h"
#include "loop.h"

#include <stddef.h>
#include <stdint.h>

struct input {
	struct source pipe; /* write end */
	uint8_t *pending;
	size_t pending_length, pending_at;
	uint64_t received; /* bytes taken over so far, written or pending */
	int closed;        /* no byte follows `received` */
	uint8_t is_terminal, mid_line; /* the end of a terminal's input is typed: twice in mid-line */
	connection_serial waiter;
	uint64_t waiter_id; /* whom to answer once nothing is pending */
};

/* Takes bytes over. 0, or one of wire_error; -1 when there is no memory. */
int input_accept(struct input *input, uint64_t offset, const uint8_t *bytes, size_t length, int close);
/* Writes what the pipe takes; closes it after the last byte; answers the waiter when nothing is pending. */
void input_push(struct input *input);
/* The command has ended: nobody reads any more. */
void input_abandon(struct input *input);

#endif
