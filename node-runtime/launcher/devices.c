#include "devices.h"

#include "files.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned major, minor;
} NODES[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

static const struct {
	const char *name, *target;
} LINKS[] = {{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"}};

static const struct {
	const char *name;
	mode_t mode;
} DIRECTORIES[] = {{"pts", 0755}, {"shm", 01777}, {"mqueue", 0755}};

static int give(int dir, const char *name, uid_t owner)
{
	return fchownat(dir, name, owner, owner, AT_SYMLINK_NOFOLLOW);
}

static int fill(int dir, uid_t owner)
{
	for (size_t i = 0; i < sizeof NODES / sizeof *NODES; i++)
		if (mknodat(dir, NODES[i].name, S_IFCHR | 0666, makedev(NODES[i].major, NODES[i].minor)) < 0 || give(dir, NODES[i].name, owner) < 0)
			return -1;
	for (size_t i = 0; i < sizeof LINKS / sizeof *LINKS; i++)
		if (symlinkat(LINKS[i].target, dir, LINKS[i].name) < 0 || give(dir, LINKS[i].name, owner) < 0)
			return -1;
	for (size_t i = 0; i < sizeof DIRECTORIES / sizeof *DIRECTORIES; i++)
		if (mkdirat(dir, DIRECTORIES[i].name, DIRECTORIES[i].mode) < 0 || give(dir, DIRECTORIES[i].name, owner) < 0)
			return -1;
	return 0;
}

int devices_make(uid_t owner, uint64_t memory_mib, struct fault *fault)
{
	char id[16], size[32];
	snprintf(size, sizeof size, "%lluk", (unsigned long long)memory_mib * 512);
	snprintf(id, sizeof id, "%u", owner);
	int context = fsopen("tmpfs", FSOPEN_CLOEXEC), mounted = -1;
	if (context >= 0 && fsconfig(context, FSCONFIG_SET_STRING, "source", "tmpfs", 0) == 0 &&
	    fsconfig(context, FSCONFIG_SET_STRING, "mode", "755", 0) == 0 && fsconfig(context, FSCONFIG_SET_STRING, "uid", id, 0) == 0 &&
	    fsconfig(context, FSCONFIG_SET_STRING, "gid", id, 0) == 0 && fsconfig(context, FSCONFIG_SET_STRING, "size", size, 0) == 0 &&
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mounted = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	close_fd(&context);
	if (mounted >= 0 && fill(mounted, owner) < 0)
		close_fd(&mounted);
	if (mounted < 0)
		fault_errno(fault, "make /dev");
	return mounted;
}
