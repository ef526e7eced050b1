#include "loop.h"

#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static int epoll_fd = -1;
static struct grave *buried;

int loop_open(void)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd < 0 ? -1 : 0;
}

int loop_watch(struct source *source, uint32_t events)
{
	if (source->events == events)
		return 0;
	int operation = source->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
	struct epoll_event event = {.events = events, .data.ptr = source};
	if (epoll_ctl(epoll_fd, operation, source->fd, &event) < 0)
		return -1;
	source->events = events;
	return 0;
}

void loop_close(struct source *source)
{
	if (source->fd < 0)
		return;
	(void)loop_watch(source, 0);
	source->events = 0;
	close(source->fd);
	source->fd = -1;
}

void loop_bury(struct grave *grave)
{
	grave->next = buried;
	buried = grave;
}

void loop_turn(int timeout_ms)
{
	struct epoll_event events[EVENTS_PER_TURN];
	int count = epoll_wait(epoll_fd, events, EVENTS_PER_TURN, timeout_ms);
	for (int i = 0; i < count; i++) {
		struct source *source = events[i].data.ptr;
		if (source->fd >= 0 && source->events != 0) /* an earlier handler of this turn may have closed it */
			source->ready(source, events[i].events);
	}
}

void loop_settle(void)
{
	while (buried) {
		struct grave *grave = buried;
		buried = grave->next;
		free(grave);
	}
}

static int64_t clock_ms(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now); /* cannot fail for the two clocks that are asked for */
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t monotonic_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

uint64_t wall_ms(void)
{
	return (uint64_t)clock_ms(CLOCK_REALTIME);
}
