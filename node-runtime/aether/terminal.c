#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

/* A mount point, which nobody inside can move: this is the instance that came with the sandbox. */
static const char multiplexer[] = "/dev/pts/ptmx";
enum { MULTIPLEXER_MAJOR = 5, MULTIPLEXER_MINOR = 2 };

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static int open_master(void)
{
	struct stat status;
	int fd = open(multiplexer, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || (fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) &&
		       status.st_rdev == makedev(MULTIPLEXER_MAJOR, MULTIPLEXER_MINOR)))
		return fd;
	close(fd);
	errno = ENODEV;
	return -1;
}

/* The peer comes from the master itself, not from a name. */
static int open_slave(int master)
{
	int unlocked = 0;
	return ioctl(master, TIOCSPTLCK, &unlocked) < 0 ? -1 : ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* Erasing takes whole characters of UTF-8. */
static int set_modes(int master, uint16_t rows, uint16_t columns)
{
	struct winsize size = {.ws_row = rows, .ws_col = columns};
	struct termios modes;
	if (ioctl(master, TIOCSWINSZ, &size) < 0 || tcgetattr(master, &modes) < 0)
		return -1;
	modes.c_iflag |= IUTF8;
	return tcsetattr(master, TCSANOW, &modes);
}

int terminal_open(struct terminal *terminal, uint16_t rows, uint16_t columns)
{
	*terminal = (struct terminal){.master = open_master(), .slave = -1};
	if (terminal->master < 0)
		return -1;
	terminal->slave = open_slave(terminal->master);
	if (terminal->slave >= 0 && set_modes(terminal->master, rows, columns) == 0)
		return 0;
	int problem = errno;
	if (terminal->slave >= 0)
		close(terminal->slave);
	close(terminal->master);
	errno = problem;
	return -1;
}

int terminal_take(void)
{
	return ioctl(STDIN_FILENO, TIOCSCTTY, 0);
}
