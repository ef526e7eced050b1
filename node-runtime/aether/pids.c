#include "pids.h"

#include "number.h"

#include <fcntl.h>
#include <unistd.h>

static int counter = -1;
static uint64_t most;

/* The number in a file of one. 0, or -1; `max` is no number. */
static int read_number(int fd, uint64_t *value)
{
	char text[24];
	ssize_t length = pread(fd, text, sizeof text - 1, 0);
	if (length <= 0)
		return -1;
	text[length] = '\0';
	return number_read(text, UINT64_MAX, value) ? 0 : -1;
}

void pids_init(int directory)
{
	int limit = openat(directory, "pids.max", O_RDONLY | O_CLOEXEC);
	if (limit < 0)
		return;
	if (read_number(limit, &most) == 0)
		counter = openat(directory, "pids.current", O_RDONLY | O_CLOEXEC);
	close(limit);
}

static int would_exceed(uint64_t joining)
{
	uint64_t now;
	return counter >= 0 && read_number(counter, &now) == 0 && now + joining > most;
}

int pids_are_full(void)
{
	return would_exceed(1);
}

int pids_are_over(void)
{
	return would_exceed(0);
}
