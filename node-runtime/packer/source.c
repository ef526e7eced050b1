#include "source.h"

#include "report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

struct source source_open_directory(const char *path)
{
	struct source source = {.upper = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), .work = -1};
	if (source.upper < 0)
		fail("open the writable layer");
	source.work = openat(source.upper, "../work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return source;
}

static int is_backed_by(const char *device, const struct stat *image)
{
	struct loop_info64 info;
	int fd = open(device, O_RDONLY | O_CLOEXEC);
	int same = fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == image->st_ino && info.lo_device == image->st_dev;
	if (fd >= 0)
		close(fd);
	return same;
}

static int find_device(const char *image, char *device, size_t size)
{
	struct stat status;
	DIR *devices = opendir("/sys/block");
	int found = 0;
	if (!devices || stat(image, &status) < 0)
		fail("look for the sandbox's disk");
	for (struct dirent *entry; !found && (entry = readdir(devices));) {
		if (strncmp(entry->d_name, "loop", 4) != 0)
			continue;
		snprintf(device, size, "/dev/%.32s", entry->d_name);
		found = is_backed_by(device, &status);
	}
	closedir(devices);
	return found;
}

struct source source_open_disk(const char *image)
{
	char device[64];
	if (!find_device(image, device, sizeof device)) {
		errno = ENOENT;
		fail("look for the sandbox's disk");
	}
	/* the file system is writable, as its owner has it; this look at it is not */
	int context = fsopen("ext4", FSOPEN_CLOEXEC), mounted = -1;
	if (context >= 0 && fsconfig(context, FSCONFIG_SET_STRING, "source", device, 0) == 0 && fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mounted = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	struct source source = {.upper = mounted < 0 ? -1 : openat(mounted, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
	if (source.upper < 0)
		fail("look into the sandbox's disk");
	source.work = openat(mounted, "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return source;
}
