#include "input.h"

#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { EOF_KEYS = 2 };

static int keep(struct input *input, const uint8_t *bytes, size_t length)
{
	input->pending = malloc(length + EOF_KEYS);
	if (!input->pending)
		return -1;
	if (length > 0)
		memcpy(input->pending, bytes, length);
	input->pending_length = length;
	input->pending_at = 0;
	return 0;
}

/* What a person types to end the input of a program that reads lines. */
static int type_end(struct input *input)
{
	struct termios modes;
	if (input->pipe.fd < 0 || tcgetattr(input->pipe.fd, &modes) < 0)
		return 0;
	if (!input->pending && keep(input, NULL, 0) < 0)
		return -1;
	for (int keys = input->mid_line ? EOF_KEYS : 1; keys > 0; keys--)
		input->pending[input->pending_length++] = modes.c_cc[VEOF];
	return 0;
}

int input_accept(struct input *input, uint64_t offset, const uint8_t *bytes, size_t length, int close)
{
	if (offset > input->received)
		return ERROR_STDIN_GAP;
	uint64_t known = input->received - offset;
	size_t skipped = known < length ? (size_t)known : length;
	bytes += skipped;
	length -= skipped;
	if (length > 0 && input->closed)
		return ERROR_STDIN_CLOSED;
	if (length > 0 && input->pending)
		return ERROR_STDIN_BUSY;
	if (length > 0 && input->pipe.fd >= 0 && keep(input, bytes, length) < 0)
		return -1;
	input->received += length;
	if (length > 0)
		input->mid_line = bytes[length - 1] != '\n' && bytes[length - 1] != '\r';
	/* a late repetition of an earlier message must not end what came after it */
	if (!close || input->closed || offset + skipped + length != input->received)
		return 0;
	input->closed = 1;
	return input->is_terminal ? type_end(input) : 0;
}

static void drop_pending(struct input *input)
{
	free(input->pending);
	input->pending = NULL;
	input->pending_length = input->pending_at = 0;
}

static void answer_waiter(struct input *input)
{
	if (input->waiter != 0)
		connection_answer(input->waiter, FRAME_STDIN_AT, input->waiter_id, &input->received, sizeof input->received);
	input->waiter = 0;
}

void input_push(struct input *input)
{
	while (input->pending && input->pipe.fd >= 0) {
		ssize_t written = write(input->pipe.fd, input->pending + input->pending_at, input->pending_length - input->pending_at);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0 && errno == EAGAIN) {
			if (loop_watch(&input->pipe, EPOLLOUT) < 0)
				input_abandon(input);
			return;
		}
		if (written < 0) {
			input_abandon(input); /* EPIPE: the reader has left */
			return;
		}
		input->pending_at += (size_t)written;
		if (input->pending_at == input->pending_length)
			drop_pending(input);
	}
	if (input->pipe.fd >= 0)
		(void)loop_watch(&input->pipe, 0);
	if (input->closed)
		loop_close(&input->pipe);
	answer_waiter(input);
}

void input_abandon(struct input *input)
{
	loop_close(&input->pipe);
	drop_pending(input);
	answer_waiter(input);
}
