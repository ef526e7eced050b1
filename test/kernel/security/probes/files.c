/*
 * Files of the kernel, by path.
 *
 *   files write PATH…   opens for writing and writes nothing: the right is what counts
 *   files read PATH…    how many bytes a first read gives
 *   files ioctl DIR     calls of file systems on files of one's own in DIR
 */
#include "attempt.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

/* XFS_IOC_SWAPEXT of xfs/xfs_fs.h: exchanges the extents of two files. */
struct swap_extents {
	long long version, target, temporary;
	off_t offset, length;
	char padding[16];
	char status[112];
};
#define SWAP_EXTENTS _IOWR('X', 109, struct swap_extents)

static const char *path;

static long opens_for_writing(void) { return open(path, O_WRONLY | O_NONBLOCK); }

static long reads_something(void)
{
	char bytes[256];
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	ssize_t got = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
	snprintf(attempt_detail, sizeof attempt_detail, "%zd", got);
	return got;
}

static int own_file(const char *name)
{
	char text[256];
	snprintf(text, sizeof text, "%s/%s", path, name);
	return open(text, O_RDWR | O_CREAT, 0600);
}

static long make_immutable(void)
{
	int fd = own_file("immutable"), flags;
	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return -1;
	int with = flags | FS_IMMUTABLE_FL;
	long result = ioctl(fd, FS_IOC_SETFLAGS, &with);
	ioctl(fd, FS_IOC_SETFLAGS, &flags);
	return result;
}

/* Quotas count by project: whoever sets it charges his files to somebody else. */
static long set_project(void)
{
	struct fsxattr attributes;
	int fd = own_file("project");
	if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0)
		return -1;
	attributes.fsx_projid += 7;
	return ioctl(fd, FS_IOC_FSSETXATTR, &attributes);
}

static long swap_extents(void)
{
	struct swap_extents swap = {.target = own_file("one"), .temporary = own_file("two")};
	return ioctl((int)swap.target, SWAP_EXTENTS, &swap);
}

static long freeze(void)
{
	int fd = open(path, O_RDONLY);
	long result = ioctl(fd, FIFREEZE, 0);
	if (result == 0)
		ioctl(fd, FITHAW, 0);
	return result;
}

static long trim(void)
{
	struct fstrim_range nothing = {.start = 0, .len = 0};
	return ioctl(open(path, O_RDONLY), FITRIM, &nothing);
}

static const struct attempt IOCTLS[] = {
	{"immutable flag", make_immutable}, {"project id", set_project}, {"XFS_IOC_SWAPEXT", swap_extents}, {"FIFREEZE", freeze}, {"FITRIM", trim},
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	for (int i = 2; i < argc; i++) {
		path = argv[i];
		struct attempt attempt = {path, strcmp(argv[1], "write") == 0 ? opens_for_writing : reads_something};
		if (strcmp(argv[1], "ioctl") == 0)
			attempt_all(IOCTLS, ATTEMPTS(IOCTLS));
		else
			attempt_one(&attempt);
	}
	return 0;
}
