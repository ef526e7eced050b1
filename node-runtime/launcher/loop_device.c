#include "loop_device.h"

#include "files.h"
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The highest number that somebody had made before us: those stay. */
static int highest_found = -1;

static int open_free(int control, int flags, int *number)
{
	char path[32];
	*number = ioctl(control, LOOP_CTL_GET_FREE);
	if (*number < 0)
		return -1;
	snprintf(path, sizeof path, "/dev/loop%d", *number);
	return open(path, flags | O_CLOEXEC);
}

int loop_device_take(int file, enum loop_device_kind kind, char *path, size_t size)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), number, device = -1;
	uint32_t flags = kind == LOOP_DEVICE_READ_ONLY ? LO_FLAGS_READ_ONLY : LO_FLAGS_DIRECT_IO;
	struct loop_config config = {.fd = (uint32_t)file, .info.lo_flags = flags | LO_FLAGS_AUTOCLEAR};
	for (int tries = 0; control >= 0 && device < 0 && tries < LOOP_TRIES_MAX; tries++) {
		device = open_free(control, kind == LOOP_DEVICE_READ_ONLY ? O_RDONLY : O_RDWR, &number);
		if (device < 0)
			break;
		if (ioctl(device, LOOP_CONFIGURE, &config) == 0)
			snprintf(path, size, "/dev/loop%d", number);
		else if (errno == EBUSY)
			close_fd(&device);
		else {
			close_fd(&device);
			break;
		}
	}
	close_fd(&control);
	return device;
}

static int number_of(const char *name)
{
	return strncmp(name, "loop", 4) == 0 && name[4] >= '0' && name[4] <= '9' ? atoi(name + 4) : -1;
}

static int note(const char *name, void *context)
{
	int number = number_of(name), *highest = context;
	if (number > *highest)
		*highest = number;
	return 0;
}

static int each_device(int (*visit)(const char *name, void *context), void *context)
{
	int devices = open("/sys/block", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = devices < 0 ? -1 : each_name(devices, visit, context);
	close_fd(&devices);
	return result;
}

void loop_devices_note(void)
{
	each_device(note, &highest_found);
}

static int remove_idle(const char *name, void *context)
{
	int number = number_of(name);
	if (number > highest_found)
		ioctl(*(int *)context, LOOP_CTL_REMOVE, number); /* one that is in use stays */
	return 0;
}

void loop_devices_tidy(void)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control >= 0)
		each_device(remove_idle, &control);
	close_fd(&control);
}
