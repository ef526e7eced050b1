#include "life.h"

#include "limits.h"
#include "loop.h"
#include "number.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static struct source life = {.fd = -1};

static void on_life_over(struct source *source, uint32_t events)
{
	(void)source;
	(void)events;
	kill(-1, SIGKILL);
	_exit(0); /* the kernel ends a pid namespace with its PID 1 */
}

int life_set(uint64_t seconds)
{
	struct itimerspec when = {.it_value.tv_sec = (time_t)seconds};
	return timerfd_settime(life.fd, 0, &when, NULL);
}

/* CLOCK_BOOTTIME: a host that slept does not lengthen a life. */
int life_open(const char *text)
{
	uint64_t seconds;
	const char *end = number_read(text, LIFE_SECONDS_LIMIT, &seconds);
	if (!end || *end != '\0') {
		errno = EINVAL;
		return -1;
	}
	life = (struct source){.fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), .ready = on_life_over};
	return life.fd < 0 || life_set(seconds) < 0 ? -1 : loop_watch(&life, EPOLLIN);
}
