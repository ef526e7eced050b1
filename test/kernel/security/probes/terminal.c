/*
 *   terminal PATH    ways to type into, take over and hang up the terminal of another command
 */
#include "attempt.h"

#include <sys/ioctl.h>

#ifndef TIOCVHANGUP
#define TIOCVHANGUP 0x5437
#endif

static const char *path;

static int opened(void)
{
	return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* A fresh session: only a terminal that is somebody's own may be typed into at all. */
static long type(void)
{
	char letter = 'x';
	return ioctl(opened(), TIOCSTI, &letter);
}

static long steal(void)
{
	int fd = opened();
	return setsid() < 0 ? -1 : ioctl(fd, TIOCSCTTY, 1);
}

static long hang_up(void)
{
	return ioctl(opened(), TIOCVHANGUP, 0);
}

static const struct attempt attempts[] = {
	{"TIOCSTI", type},
	{"TIOCSCTTY, stolen", steal},
	{"TIOCVHANGUP", hang_up},
};

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	path = argv[1];
	attempt_all(attempts, ATTEMPTS(attempts));
	return 0;
}
