#include "server.h"

#include "control.h"
#include "files.h"
#include "frame.h"
#include "launcher.h"
#include "loop.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct connection {
	struct watch watch;
	struct frame_reader reader;
	uint64_t generation; /* of this slot: a ticket of an older one is void */
	bool greeted;
};

static struct connection connections[CONNECTIONS_MAX];
static struct watch listener = {.fd = -1};
static char socket_path[SOCKET_PATH_BYTES];

void body_add(struct body *body, const char *key, const char *format, ...)
{
	char value[1024];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(value, sizeof value, format, arguments);
	va_end(arguments);
	size_t needed = body->length + strlen(key) + strlen(value) + 2;
	if (needed > body->capacity) {
		size_t capacity = needed * 2;
		char *grown = needed > FRAME_BODY_MAX ? NULL : realloc(body->bytes, capacity);
		if (!grown) {
			body->failed = true;
			return;
		}
		body->bytes = grown;
		body->capacity = capacity;
	}
	body->length += (size_t)sprintf(body->bytes + body->length, "%s=%s", key, value) + 1;
}

void body_free(struct body *body)
{
	free(body->bytes);
	*body = (struct body){0};
}

static void drop(struct connection *connection)
{
	loop_close(&connection->watch);
	frame_reader_free(&connection->reader);
	connection->greeted = false;
	connection->generation++;
}

static void send_answer(const struct ticket *ticket, uint16_t type, const struct body *body)
{
	struct connection *connection = &connections[ticket->connection];
	if (connection->generation != ticket->generation || connection->watch.fd < 0)
		return;
	/* an Edge that does not read its answers is cut off; it asks again when it comes back */
	if (frame_send(connection->watch.fd, type, ticket->request, body->bytes, body->length) < 0)
		drop(connection);
}

void answer_ok(const struct ticket *ticket, struct body *body)
{
	struct body none = {0};
	if (body && body->failed) {
		struct fault fault;
		fault_set(&fault, CODE_FULL, "build answer", ENOMEM, "the answer does not fit into a frame");
		answer_fault(ticket, &fault);
	} else
		send_answer(ticket, ANSWER_OK, body ? body : &none);
	if (body)
		body_free(body);
}

void answer_fault(const struct ticket *ticket, const struct fault *fault)
{
	struct body body = {0};
	body_add(&body, "code", "%s", fault->code);
	body_add(&body, "step", "%s", fault->step);
	body_add(&body, "errno", "%s", fault->error && strerrorname_np(fault->error) ? strerrorname_np(fault->error) : "");
	body_add(&body, "message", "%s", fault->message);
	send_answer(ticket, ANSWER_ERROR, &body);
	body_free(&body);
}

/* Epochs ------------------------------------------------------------------------------------------------------ */

static int remember_epoch(uint64_t epoch)
{
	char text[32];
	int length = snprintf(text, sizeof text, "%llu\n", (unsigned long long)epoch);
	return replace_file(launcher.run_fd, "epoch", text, (size_t)length);
}

static uint64_t remembered_epoch(void)
{
	char text[32];
	return read_text(launcher.run_fd, "epoch", text, sizeof text) > 0 ? strtoull(text, NULL, 10) : 0;
}

static int take_over(struct connection *by, uint64_t epoch, struct fault *fault)
{
	if (epoch < launcher.epoch)
		return fault_set(fault, CODE_EPOCH, "HELLO", 0, "epoch %llu is over: the Edge of epoch %llu has taken over",
				 (unsigned long long)epoch, (unsigned long long)launcher.epoch);
	if (epoch > launcher.epoch) {
		if (remember_epoch(epoch) < 0)
			return fault_errno(fault, "remember epoch");
		launcher.epoch = epoch;
		for (int i = 0; i < CONNECTIONS_MAX; i++)
			if (&connections[i] != by && connections[i].greeted)
				drop(&connections[i]);
	}
	by->greeted = true;
	return 0;
}

static void hello(struct connection *connection, const struct request *request)
{
	uint64_t epoch;
	struct fault fault;
	const char *group = kv_get(request->body, request->length, "group");
	if (group && strcmp(group, launcher.cgroup_name) != 0) {
		fault_set(&fault, CODE_FOREIGN, "HELLO", 0, "the run directory is in use by another platform, whose control group is %s", launcher.cgroup_name);
		answer_fault(&request->ticket, &fault);
	} else if (kv_get_u64(request->body, request->length, "epoch", 1, INT64_MAX, &epoch) < 0) {
		fault_set(&fault, CODE_INVALID, "HELLO", EINVAL, "HELLO: field epoch is missing or out of range");
		answer_fault(&request->ticket, &fault);
	} else if (take_over(connection, epoch, &fault) < 0)
		answer_fault(&request->ticket, &fault);
	else
		control_hello(request);
}

/* Connections ------------------------------------------------------------------------------------------------- */

static void handle(struct connection *connection, const struct frame_header *header, const uint8_t *body)
{
	struct request request = {
		.ticket = {(int)(connection - connections), connection->generation, header->id},
		.body = body,
		.length = header->length,
	};
	struct fault fault;
	if (header->type == REQUEST_HELLO)
		hello(connection, &request);
	else if (!connection->greeted) {
		fault_set(&fault, CODE_EPOCH, "HELLO", 0, "say HELLO with an epoch first");
		answer_fault(&request.ticket, &fault);
	} else if (!control_handle(header->type, &request)) {
		fault_set(&fault, CODE_INVALID, "dispatch", EINVAL, "there is no request of type %u", header->type);
		answer_fault(&request.ticket, &fault);
	}
}

static void on_readable(struct watch *watch, uint32_t events)
{
	(void)events;
	struct connection *connection = OWNER_OF(watch, struct connection, watch);
	uint64_t generation = connection->generation;
	int filled = frame_reader_fill(&connection->reader, watch->fd);
	if (filled < 0) {
		drop(connection);
		return;
	}
	struct frame_header header;
	const uint8_t *body;
	while (connection->generation == generation && frame_reader_next(&connection->reader, &header, &body)) {
		handle(connection, &header, body);
		if (connection->generation == generation)
			frame_reader_consume(&connection->reader);
	}
}

static void on_connect(struct watch *watch, uint32_t events)
{
	(void)events;
	int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *connection = &connections[i];
		if (connection->watch.fd >= 0)
			continue;
		frame_reader_init(&connection->reader);
		if (loop_watch(&connection->watch, fd, on_readable) == 0)
			return;
		break;
	}
	close(fd); /* no place: the Edge tries again */
}

int server_open(struct fault *fault)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(socket_path, sizeof socket_path, "%s/launcher.sock", launcher.run);
	if (length >= (int)sizeof socket_path)
		return fault_set(fault, CODE_INVALID, "bind socket", ENAMETOOLONG, "--run %s is too long for a socket path", launcher.run);
	memcpy(address.sun_path, socket_path, (size_t)length + 1);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		connections[i].watch.fd = -1;
	launcher.epoch = remembered_epoch();
	unlink(socket_path); /* a former launcher's: the lock says that it is gone */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0177);
	int bound = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof address);
	umask(mask);
	if (bound < 0 || listen(fd, LISTEN_BACKLOG) < 0 || loop_watch(&listener, fd, on_connect) < 0) {
		close_fd(&fd);
		return fault_errno(fault, "listen");
	}
	return 0;
}

void server_stop_listening(void)
{
	unlink(socket_path);
	loop_close(&listener);
}

void server_close(void)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		drop(&connections[i]);
}

void server_abandon(void)
{
	close(listener.fd);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (connections[i].watch.fd >= 0)
			close(connections[i].watch.fd);
}
