#include "dial.h"

#include "frame.h"
#include "limits.h"
#include "loop.h"
#include "relay.h"
#include "wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A connection on its way. */
struct dial {
	struct grave grave;
	struct dial *next;
	struct source inside;
	int edge_fd;
	uint64_t id;
	uint16_t port; /* to be tried on ::1 too; 0: nothing else to try */
	int64_t deadline_ms;
};

static struct dial *dials;

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

/* 20 bytes into a socket that has carried nothing yet always fit. */
static int tell(int edge_fd, uint64_t id, int error_number)
{
	struct dialed_body body = {.error_number = error_number};
	return frame_send(edge_fd, FRAME_DIALED, id, &body, sizeof body);
}

static void refuse(int edge_fd, uint64_t id, int error_number)
{
	(void)tell(edge_fd, id, error_number);
	close(edge_fd);
}

/* A socket that connects, or has: 0; or -1 with errno. */
static int open_towards(const union address *address, socklen_t length, int *fd)
{
	*fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return -1;
	if (connect(*fd, &address->any, length) == 0 || errno == EINPROGRESS)
		return 0;
	int problem = errno;
	close(*fd);
	*fd = -1;
	errno = problem;
	return -1;
}

static int open_port(uint16_t port, int family, int *fd)
{
	union address address = {0};
	if (family == AF_INET6) {
		address.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
		return open_towards(&address, sizeof address.v6, fd);
	}
	address.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return open_towards(&address, sizeof address.v4, fd);
}

static int open_path(const char *path, int *fd)
{
	union address address = {.local = {.sun_family = AF_UNIX}};
	strcpy(address.local.sun_path, path); /* its length was checked with the request */
	return open_towards(&address, sizeof address.local, fd);
}

static void forget(struct dial *dial)
{
	struct dial **at = &dials;
	while (*at != dial)
		at = &(*at)->next;
	*at = dial->next;
	loop_close(&dial->inside);
	loop_bury(&dial->grave);
}

static void give_up(struct dial *dial, int error_number)
{
	refuse(dial->edge_fd, dial->id, error_number);
	forget(dial);
}

static void on_ready(struct source *source, uint32_t events);

/* Nobody at 127.0.0.1: perhaps at ::1. 1 when that is on its way now. */
static int try_other_family(struct dial *dial)
{
	uint16_t port = dial->port;
	dial->port = 0;
	if (port == 0)
		return 0;
	loop_close(&dial->inside);
	return open_port(port, AF_INET6, &dial->inside.fd) == 0 && loop_watch(&dial->inside, EPOLLOUT) == 0;
}

static void on_ready(struct source *source, uint32_t events)
{
	struct dial *dial = (struct dial *)((char *)source - offsetof(struct dial, inside));
	int problem = 0;
	socklen_t length = sizeof problem;
	(void)events;
	if (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &problem, &length) < 0)
		problem = errno;
	if (problem != 0)
		return try_other_family(dial) ? (void)0 : give_up(dial, problem);
	(void)loop_watch(source, 0);
	if (tell(dial->edge_fd, dial->id, 0) < 0 || relay_start(dial->edge_fd, source->fd) < 0)
		close(dial->edge_fd);
	else
		source->fd = -1; /* the relay's now */
	forget(dial);
}

static size_t count_dials(void)
{
	size_t count = 0;
	for (const struct dial *at = dials; at; at = at->next)
		count++;
	return count;
}

void dial_start(int edge_fd, uint64_t id, const struct dial_request *request)
{
	int inside = -1;
	if (relay_is_full() || count_dials() >= DIALS_MAX)
		return refuse(edge_fd, id, EMFILE);
	if ((request->path ? open_path(request->path, &inside) : open_port(request->port, AF_INET, &inside)) < 0)
		return refuse(edge_fd, id, errno);
	struct dial *dial = calloc(1, sizeof *dial);
	if (!dial) {
		close(inside);
		return refuse(edge_fd, id, ENOMEM);
	}
	dial->inside = (struct source){.fd = inside, .ready = on_ready};
	dial->edge_fd = edge_fd;
	dial->id = id;
	dial->port = request->port;
	dial->deadline_ms = monotonic_ms() + DIAL_LIMIT_MS;
	dial->next = dials;
	dials = dial;
	if (loop_watch(&dial->inside, EPOLLOUT) < 0)
		give_up(dial, errno);
}

int dials_tick(void)
{
	int64_t now = monotonic_ms(), wake = INT64_MAX;
	for (struct dial *at = dials, *next; at; at = next) {
		next = at->next;
		if (now >= at->deadline_ms)
			give_up(at, ETIMEDOUT);
		else if (at->deadline_ms < wake)
			wake = at->deadline_ms;
	}
	return wake == INT64_MAX ? -1 : (int)(wake - now);
}
