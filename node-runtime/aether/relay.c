#include "relay.h"

#include "limits.h"
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* One direction. */
struct half {
	int pipe[2];
	size_t held;      /* bytes in the pipe */
	int ended, told;  /* its source has ended; its target knows */
};

struct relay {
	struct grave grave;
	struct relay *next;
	struct source edge, inside;
	struct half inward, outward;
	int moved; /* since the last look */
};

static struct relay *relays;
static int64_t look_at_ms;

int relay_is_full(void)
{
	int count = 0;
	for (const struct relay *at = relays; at; at = at->next)
		count++;
	return count >= RELAYS_MAX;
}

static void close_half(struct half *half)
{
	for (int i = 0; i < 2; i++)
		if (half->pipe[i] >= 0)
			close(half->pipe[i]);
}

static void end(struct relay *relay)
{
	struct relay **at = &relays;
	while (*at != relay)
		at = &(*at)->next;
	*at = relay->next;
	loop_close(&relay->edge);
	loop_close(&relay->inside);
	close_half(&relay->inward);
	close_half(&relay->outward);
	loop_bury(&relay->grave);
}

/* 1: moved something. 0: nothing to move now. -1: this direction is broken. */
static int fill(struct half *half, int from)
{
	if (half->ended || half->held > 0)
		return 0;
	ssize_t got = splice(from, NULL, half->pipe[1], NULL, RELAY_BYTES, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	half->held = (size_t)got;
	half->ended = got == 0;
	return 1;
}

static int empty(struct half *half, int to)
{
	if (half->held > 0) {
		ssize_t put = splice(half->pipe[0], NULL, to, NULL, half->held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
		if (put < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		half->held -= (size_t)put;
		return put > 0;
	}
	if (!half->ended || half->told)
		return 0;
	half->told = 1;
	return shutdown(to, SHUT_WR) < 0 ? -1 : 1;
}

static int pump(struct half *half, int from, int to)
{
	int moved = 0;
	/* a bound, so that one busy pair does not keep the loop */
	for (int round = 0; round < RELAY_ROUNDS_MAX; round++) {
		int in = fill(half, from), out = in < 0 ? -1 : empty(half, to);
		if (in < 0 || out < 0)
			return -1;
		if (in == 0 && out == 0)
			break;
		moved = 1;
	}
	return moved;
}

static uint32_t wanted(const struct half *reading, const struct half *writing)
{
	return (!reading->ended && reading->held == 0 ? (uint32_t)EPOLLIN : 0) | (writing->held > 0 ? (uint32_t)EPOLLOUT : 0);
}

static void serve(struct relay *relay)
{
	int inward = pump(&relay->inward, relay->edge.fd, relay->inside.fd);
	if (inward < 0) /* a server that reads no more may still have an answer on its way */
		relay->inward = (struct half){.pipe = {relay->inward.pipe[0], relay->inward.pipe[1]}, .ended = 1, .told = 1};
	int outward = pump(&relay->outward, relay->inside.fd, relay->edge.fd);
	if (outward < 0 || (relay->inward.told && relay->outward.told))
		return end(relay);
	relay->moved |= inward != 0 || outward != 0;
	if (loop_watch(&relay->edge, wanted(&relay->inward, &relay->outward)) < 0 ||
	    loop_watch(&relay->inside, wanted(&relay->outward, &relay->inward)) < 0)
		end(relay);
}

/* A hang-up that nothing is read or written after is the end; else reading and writing find out themselves. */
static void on_edge(struct source *source, uint32_t events)
{
	struct relay *relay = (struct relay *)((char *)source - offsetof(struct relay, edge));
	if ((events & (EPOLLHUP | EPOLLERR)) && !(events & EPOLLIN))
		return end(relay);
	serve(relay);
}

static void on_inside(struct source *source, uint32_t events)
{
	struct relay *relay = (struct relay *)((char *)source - offsetof(struct relay, inside));
	if ((events & EPOLLERR) && !(events & EPOLLIN))
		return end(relay);
	serve(relay);
}

static struct relay *make(int edge_fd, int inside_fd)
{
	struct relay *relay = calloc(1, sizeof *relay);
	if (!relay)
		return NULL;
	relay->edge = (struct source){.fd = edge_fd, .ready = on_edge};
	relay->inside = (struct source){.fd = inside_fd, .ready = on_inside};
	relay->inward = relay->outward = (struct half){.pipe = {-1, -1}};
	if (pipe2(relay->inward.pipe, O_CLOEXEC | O_NONBLOCK) == 0 && pipe2(relay->outward.pipe, O_CLOEXEC | O_NONBLOCK) == 0)
		return relay;
	int problem = errno;
	close_half(&relay->inward);
	free(relay);
	errno = problem;
	return NULL;
}

int relay_start(int edge_fd, int inside_fd)
{
	struct relay *relay = make(edge_fd, inside_fd);
	if (!relay)
		return -1;
	if (!relays)
		look_at_ms = monotonic_ms() + RELAY_LOOK_MS;
	relay->next = relays;
	relays = relay;
	serve(relay);
	return 0;
}

static int has_left(int fd)
{
	struct pollfd edge = {.fd = fd, .events = 0};
	return poll(&edge, 1, 0) == 1 && (edge.revents & (POLLHUP | POLLERR)) != 0;
}

int relays_tick(void)
{
	if (!relays)
		return -1;
	int64_t now = monotonic_ms();
	if (now < look_at_ms)
		return (int)(look_at_ms - now);
	for (struct relay *at = relays, *next; at; at = next) {
		next = at->next;
		if (!at->moved && has_left(at->edge.fd))
			end(at);
		else
			at->moved = 0;
	}
	look_at_ms = now + RELAY_LOOK_MS;
	return relays ? RELAY_LOOK_MS : -1;
}
