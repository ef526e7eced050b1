#include "dispatch.h"

#include "command.h"
#include "request.h"
#include "wire.h"

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
	default:
		return -1;
	}
}
