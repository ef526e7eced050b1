#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int open_beneath(int root, const char *path, uint64_t flags, uint64_t resolve, mode_t mode)
{
	struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = resolve, .mode = mode};
	return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

int open_point(int root, const char *path)
{
	if (mkdirat(root, path, 0755) < 0 && errno != EEXIST)
		return -1;
	return open_beneath(root, path, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, 0);
}

int attach(int mounted, int point)
{
	return move_mount(mounted, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}
