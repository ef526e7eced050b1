#include "connection.h"

#include "dispatch.h"
#include "frame.h"
#include "limits.h"
#include "loop.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
	struct grave grave;
	struct connection *next; /* newest first */
	struct source source;
	connection_serial serial;
	struct frame_reader reader;
	uint8_t *unsent;
	size_t unsent_length, unsent_capacity;
	int closing; /* close once `unsent` is out */
	int listening; /* it has asked about commands: unasked frames may go here */
};

enum { READER_KEPT_BYTES = 16 * 1024, SEND_KEPT_BYTES = 1024 };

static struct connection *connections;
static struct source listener = {.fd = -1};
static connection_serial newest_serial;

static struct connection *connection_of(struct source *source)
{
	return (struct connection *)((char *)source - offsetof(struct connection, source));
}

static struct connection *find(connection_serial serial)
{
	struct connection *at = connections;
	while (at && at->serial != serial)
		at = at->next;
	return at;
}

static void drop(struct connection *connection)
{
	if (connection->source.fd < 0)
		return; /* dropped before, in this turn */
	struct connection **at = &connections;
	while (*at != connection)
		at = &(*at)->next;
	*at = connection->next;
	loop_close(&connection->source);
	frame_reader_free(&connection->reader);
	free(connection->unsent);
	loop_bury(&connection->grave);
}

static int append(struct connection *connection, const void *bytes, size_t length)
{
	size_t wanted = connection->unsent_length + length;
	if (wanted > SEND_MAX_BYTES)
		return -1;
	if (wanted > connection->unsent_capacity) {
		size_t capacity = wanted > SEND_KEPT_BYTES ? 2 * wanted : SEND_KEPT_BYTES;
		uint8_t *grown = realloc(connection->unsent, capacity);
		if (!grown)
			return -1;
		connection->unsent = grown;
		connection->unsent_capacity = capacity;
	}
	memcpy(connection->unsent + connection->unsent_length, bytes, length);
	connection->unsent_length = wanted;
	return 0;
}

static int append_frame(struct connection *connection, uint16_t type, uint64_t id, const void *body, size_t length)
{
	struct frame_header header = {.length = (uint32_t)length, .type = type, .id = id};
	_Static_assert(sizeof header == FRAME_HEADER_BYTES, "a header is sent as it lies in memory");
	if (append(connection, &header, sizeof header) < 0)
		return -1;
	return length == 0 ? 0 : append(connection, body, length);
}

/* How much of the socket's attention is wanted: no requests while its answers pile up. */
static void rewatch(struct connection *connection)
{
	uint32_t events = connection->unsent_length > 0 ? EPOLLOUT : 0;
	if (!connection->closing && connection->unsent_length < SEND_PAUSE_BYTES)
		events |= EPOLLIN;
	if (loop_watch(&connection->source, events) < 0)
		drop(connection);
}

static void send_unsent(struct connection *connection)
{
	while (connection->unsent_length > 0) {
		ssize_t sent = send(connection->source.fd, connection->unsent, connection->unsent_length, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno != EAGAIN)
			return drop(connection);
		if (sent < 0)
			return rewatch(connection);
		connection->unsent_length -= (size_t)sent;
		memmove(connection->unsent, connection->unsent + sent, connection->unsent_length);
	}
	if (connection->closing)
		return drop(connection);
	if (connection->unsent_capacity > SEND_KEPT_BYTES) {
		free(connection->unsent);
		connection->unsent = NULL;
		connection->unsent_capacity = 0;
	}
	rewatch(connection);
}

static void refuse(struct connection *connection, uint64_t id)
{
	if (connection->source.fd < 0)
		return;
	struct error_body body = {.code = ERROR_MALFORMED};
	connection->closing = 1;
	if (append_frame(connection, FRAME_ERROR, id, &body, sizeof body) < 0)
		drop(connection);
}

/* A reader's memory grows with the largest frame; a big START should not cost its size for ever. */
static void shrink_reader(struct frame_reader *reader)
{
	if (reader->used == 0 && reader->capacity > READER_KEPT_BYTES)
		frame_reader_free(reader);
}

static void drop_oldest_beyond_limit(void)
{
	int edges = 0, newcomers = 0;
	for (struct connection *at = connections, *next; at; at = next) {
		next = at->next;
		if (at->listening ? ++edges > CONNECTIONS_MAX : ++newcomers > NEWCOMERS_MAX)
			drop(at);
	}
}

/* It is an Edge: one of few. */
static void admit(struct connection *connection)
{
	if (connection->listening)
		return;
	connection->listening = 1;
	drop_oldest_beyond_limit();
}

/* Takes what has come whole, as long as there is room for the answers. */
static void take_frames(struct connection *connection)
{
	struct frame_header header;
	const uint8_t *body;
	while (!connection->closing && connection->unsent_length < SEND_PAUSE_BYTES && frame_reader_next(&connection->reader, &header, &body)) {
		if (dispatch_frame(connection->serial, &header, body) < 0)
			return refuse(connection, header.id);
		admit(connection);
		frame_reader_consume(&connection->reader);
	}
	shrink_reader(&connection->reader);
}

static void on_ready(struct source *source, uint32_t events)
{
	struct connection *connection = connection_of(source);
	if (events & EPOLLIN) {
		int filled = frame_reader_fill(&connection->reader, source->fd);
		if (filled < 0 && errno == EMSGSIZE)
			return refuse(connection, 0);
		if (filled < 0)
			return drop(connection);
		int newcomer = !connection->listening;
		take_frames(connection);
		if (newcomer)
			drop_oldest_beyond_limit(); /* it may be an Edge now, and one too many */
	} else if (events & (EPOLLERR | EPOLLHUP)) {
		drop(connection);
	}
	/* EPOLLOUT: connections_flush at the end of every turn sends what there is */
}

static void on_accept(struct source *source, uint32_t events)
{
	(void)events;
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	struct connection *connection = calloc(1, sizeof *connection);
	if (!connection) {
		close(fd);
		return;
	}
	connection->source = (struct source){.fd = fd, .ready = on_ready};
	connection->serial = ++newest_serial;
	connection->next = connections;
	connections = connection;
	if (loop_watch(&connection->source, EPOLLIN) < 0)
		return drop(connection);
	drop_oldest_beyond_limit();
}

int connections_open(int listener_fd)
{
	listener = (struct source){.fd = listener_fd, .ready = on_accept};
	return loop_watch(&listener, EPOLLIN);
}

void connection_answer(connection_serial to, uint16_t type, uint64_t id, const void *body, size_t length)
{
	struct connection *connection = find(to);
	if (connection && append_frame(connection, type, id, body, length) < 0)
		drop(connection);
}

int connection_socket(connection_serial serial)
{
	struct connection *connection = find(serial);
	return connection ? connection->source.fd : -1;
}

void connection_leave(connection_serial serial)
{
	struct connection *connection = find(serial);
	if (connection)
		drop(connection);
}

int connection_alive(connection_serial serial)
{
	return find(serial) != NULL;
}

int connections_announce(uint16_t type, const void *body, size_t length)
{
	struct connection *connection = connections;
	while (connection && (connection->closing || !connection->listening))
		connection = connection->next;
	if (!connection)
		return -1;
	if (connection->unsent_length >= SEND_PAUSE_BYTES)
		return 0;
	return append_frame(connection, type, 0, body, length) < 0 ? 0 : 1;
}

/* Whether a whole frame was left waiting for room that there is now. */
static int has_backlog(const struct connection *connection)
{
	struct frame_header header;
	const uint8_t *body;
	return !connection->closing && connection->unsent_length < SEND_PAUSE_BYTES &&
	       frame_reader_next(&connection->reader, &header, &body);
}

int connections_flush(void)
{
	int backlog = 0;
	for (struct connection *at = connections, *next; at; at = next) {
		next = at->next;
		if (at->unsent_length > 0)
			send_unsent(at);
		if (at->source.fd >= 0 && has_backlog(at)) {
			take_frames(at);
			backlog = 1;
		}
	}
	return backlog;
}
