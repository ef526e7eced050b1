#include "loop.h"

#include "files.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static int epoll_fd = -1;
static struct timer *timers;

int loop_open(void)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd < 0 ? -1 : 0;
}

int loop_watch(struct watch *watch, int fd, void (*ready)(struct watch *, uint32_t))
{
	*watch = (struct watch){.fd = fd, .ready = ready};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	watch->fd = -1;
	return -1;
}

void loop_close(struct watch *watch)
{
	if (watch->fd < 0)
		return;
	/* a clone that has not reached exec still holds the open file: closing alone would leave it watched */
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	close_fd(&watch->fd);
}

int64_t loop_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void loop_set_timer(struct timer *timer, int64_t in_ms, void (*due)(struct timer *))
{
	loop_clear_timer(timer);
	timer->at_ms = loop_now_ms() + in_ms;
	timer->due = due;
	timer->armed = true;
	timer->next = timers;
	timers = timer;
}

void loop_clear_timer(struct timer *timer)
{
	if (!timer->armed)
		return;
	struct timer **link = &timers;
	while (*link != timer)
		link = &(*link)->next;
	*link = timer->next;
	timer->armed = false;
}

static struct timer *earliest_timer(void)
{
	struct timer *first = timers;
	for (struct timer *timer = timers; timer; timer = timer->next)
		if (timer->at_ms < first->at_ms)
			first = timer;
	return first;
}

static void run_due_timers(void)
{
	struct timer *timer;
	int64_t now = loop_now_ms();
	while ((timer = earliest_timer()) && timer->at_ms <= now) {
		loop_clear_timer(timer);
		timer->due(timer);
	}
}

int loop_turn(void)
{
	struct timer *timer = earliest_timer();
	int wait_ms = -1;
	if (timer) {
		int64_t left = timer->at_ms - loop_now_ms();
		wait_ms = left < 0 ? 0 : (int)left;
	}
	struct epoll_event event;
	int count = epoll_wait(epoll_fd, &event, 1, wait_ms);
	if (count < 0 && errno != EINTR)
		return -1;
	if (count == 1) {
		struct watch *watch = event.data.ptr;
		watch->ready(watch, event.events);
	}
	run_due_timers();
	return 0;
}
