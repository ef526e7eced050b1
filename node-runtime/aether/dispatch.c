#include "dispatch.h"

#include "command.h"
#include "dial.h"
#include "files_worker.h"
#include "life.h"
#include "request.h"
#include "wire.h"

#include <fcntl.h>

static int take_start(connection_serial from, const struct frame_header *header, const uint8_t *body)
{
	struct start_request request;
	if (request_parse_start(body, header->length, &request) < 0)
		return -1;
	command_start(from, header->id, &request);
	return 0;
}

static int take_stdin(connection_serial from, const struct frame_header *header, const uint8_t *body)
{
	struct stdin_request request;
	if (request_parse_stdin(body, header->length, &request) < 0)
		return -1;
	command_feed(from, header->id, &request);
	return 0;
}

static int take_signal(connection_serial from, const struct frame_header *header, const uint8_t *body)
{
	struct signal_request request;
	if (request_parse_signal(body, header->length, &request) < 0)
		return -1;
	uint8_t delivered = command_signal(&request) ? 1 : 0;
	connection_answer(from, FRAME_SIGNALED, header->id, &delivered, sizeof delivered);
	return 0;
}

static int take_resize(connection_serial from, const struct frame_header *header, const uint8_t *body)
{
	struct resize_request request;
	if (request_parse_resize(body, header->length, &request) < 0)
		return -1;
	uint8_t delivered = command_resize(&request) ? 1 : 0;
	connection_answer(from, FRAME_SIGNALED, header->id, &delivered, sizeof delivered);
	return 0;
}

static int take_window(connection_serial from, const struct frame_header *header, const uint8_t *body)
{
	struct window_request request;
	if (request_parse_window(body, header->length, &request) < 0)
		return -1;
	command_window(from, header->id, &request);
	return 0;
}

static int take_life(connection_serial from, const struct frame_header *header, const uint8_t *body)
{
	uint64_t seconds;
	if (request_parse_life(body, header->length, &seconds) < 0 || life_set(seconds) < 0)
		return -1;
	connection_answer(from, FRAME_PONG, header->id, NULL, 0);
	return 0;
}

static int take_clock(connection_serial from, const struct frame_header *header, const uint8_t *body)
{
	uint64_t stopped;
	if (request_parse_clock(body, header->length, &stopped) < 0)
		return -1;
	commands_stop_clock((int)stopped);
	connection_answer(from, FRAME_PONG, header->id, NULL, 0);
	return 0;
}

/* The connection leaves the loop: from here on it is the worker's. */
static int take_files(connection_serial from, const struct frame_header *header, const uint8_t *body)
{
	const char *user;
	if (request_parse_files(body, header->length, &user) < 0)
		return -1;
	files_start(connection_socket(from), header->id, user);
	connection_leave(from);
	return 0;
}

/* The socket leaves the frames' hands: what comes on it from now on is another protocol's. */
static int take_dial(connection_serial from, const struct frame_header *header, const uint8_t *body)
{
	struct dial_request request;
	if (request_parse_dial(body, header->length, &request) < 0)
		return -1;
	int socket = fcntl(connection_socket(from), F_DUPFD_CLOEXEC, 0);
	if (socket >= 0)
		dial_start(socket, header->id, &request);
	connection_leave(from);
	return 0;
}

static int take_query(connection_serial from, const struct frame_header *header, const uint8_t *body)
{
	const char *exec;
	if (request_parse_query(body, header->length, &exec) < 0)
		return -1;
	command_query(from, header->id, exec);
	return 0;
}

int dispatch_frame(connection_serial from, const struct frame_header *header, const uint8_t *body)
{
	if (header->flags != 0 || header->id == 0)
		return -1;
	switch (header->type) {
	case FRAME_PING:
		connection_answer(from, FRAME_PONG, header->id, NULL, 0);
		return header->length == 0 ? 0 : -1;
	case FRAME_START:
		return take_start(from, header, body);
	case FRAME_STDIN:
		return take_stdin(from, header, body);
	case FRAME_SIGNAL:
		return take_signal(from, header, body);
	case FRAME_QUERY:
		return take_query(from, header, body);
	case FRAME_RESIZE:
		return take_resize(from, header, body);
	case FRAME_WINDOW:
		return take_window(from, header, body);
	case FRAME_DIAL:
		return take_dial(from, header, body);
	case FRAME_LIFE:
		return take_life(from, header, body);
	case FRAME_CLOCK:
		return take_clock(from, header, body);
	case FRAME_FILES:
		return take_files(from, header, body);
	default:
		return -1;
	}
}
