#include "inside.h"

#include "beneath.h"
#include "facts.h"
#include "files.h"
#include "limits.h"
#include "names.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

struct option {
	const char *key, *value;
};

/* Makes a file system and attaches it at `path`. Returns the descriptor of its root. */
static int mount_new(int root, const char *path, const char *type, const struct option *options, unsigned attributes)
{
	int context = fsopen(type, FSOPEN_CLOEXEC), mounted = -1, point = -1;
	if (context < 0)
		return -1;
	if (fsconfig(context, FSCONFIG_SET_STRING, "source", type, 0) < 0) /* what df and mount show */
		goto out;
	for (; options && options->key; options++)
		if (fsconfig(context, FSCONFIG_SET_STRING, options->key, options->value, 0) < 0)
			goto out;
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 || (mounted = fsmount(context, FSMOUNT_CLOEXEC, attributes)) < 0)
		goto out;
	point = open_point(root, path);
	if (point < 0 || attach(mounted, point) < 0)
		close_fd(&mounted);
out:
	close_fd(&point);
	close_fd(&context);
	return mounted;
}

/* Covers a file or a directory that is there with `cover`, a clone of something harmless. */
static int cover(int root, const char *path, int from, const char *harmless)
{
	int point = open_beneath(root, path, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH, 0);
	if (point < 0)
		return errno == ENOENT ? 0 : -1;
	int clone = open_tree(from, harmless, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (*harmless ? 0 : AT_EMPTY_PATH));
	int result = clone < 0 ? -1 : attach(clone, point);
	close_fd(&clone);
	close_fd(&point);
	return result;
}

static int make_read_only(int root, const char *path)
{
	int point = open_beneath(root, path, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH, 0);
	if (point < 0)
		return errno == ENOENT ? 0 : -1;
	int clone = open_tree(point, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	int result = clone < 0 || mount_setattr(clone, "", AT_EMPTY_PATH | AT_RECURSIVE, &read_only, sizeof read_only) < 0 ? -1 : attach(clone, point);
	close_fd(&clone);
	close_fd(&point);
	return result;
}

/*
 * What Docker hides and protects, and the per-page files: reading those has crashed a kernel (@paper §6.4). What only root of the
 * host may open (kmsg, slabinfo, …) is refused by itself: the sandbox's root is somebody else.
 */
static const char *const HIDDEN_FILES[] = {
	"kcore", "keys", "timer_list", "sched_debug", "latency_stats", "kpagecount", "kpageflags", "kpagecgroup", "interrupts",
};
static const char *const HIDDEN_DIRECTORIES[] = {"acpi", "asound", "scsi"};
static const char *const READ_ONLY[] = {"bus", "fs", "irq", "pressure", "sys", "sysrq-trigger"};
/* The last one names the host's files behind its loop devices. */
static const char *const HIDDEN_SYS[] = {"firmware", "devices/virtual/powercap", "devices/virtual/block"};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/*
 * Lays an empty read-only directory over others; it is the launcher's, one for all sandboxes. Detached mounts cannot be cloned on older
 * kernels: the first directory that is there gets the mount itself, the others clones of it.
 */
static int hide_directories(int root, const char *const *paths, size_t count, int empty, bool *attached)
{
	for (size_t i = 0; i < count; i++) {
		int point = open_beneath(root, paths[i], O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_BENEATH, 0);
		if (point < 0 && errno == ENOENT)
			continue;
		int result = -1;
		if (point >= 0)
			result = *attached ? cover(root, paths[i], empty, "") : attach(empty, point);
		*attached = true;
		close_fd(&point);
		if (result < 0)
			return -1;
	}
	return 0;
}

static int protect_proc(int proc, int dev, int empty, bool *attached)
{
	for (size_t i = 0; i < COUNT_OF(HIDDEN_FILES); i++)
		if (cover(proc, HIDDEN_FILES[i], dev, "null") < 0)
			return -1;
	if (hide_directories(proc, HIDDEN_DIRECTORIES, COUNT_OF(HIDDEN_DIRECTORIES), empty, attached) < 0)
		return -1;
	for (size_t i = 0; i < COUNT_OF(READ_ONLY); i++)
		if (make_read_only(proc, READ_ONLY[i]) < 0)
			return -1;
	return 0;
}

/* A part of the file system of /dev, which a file system of its own would only make dearer, under flags of its own. */
static int mount_shm(int dev)
{
	struct mount_attr flags = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};
	int point = open_beneath(dev, "shm", O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_BENEATH, 0);
	int clone = open_tree(dev, "shm", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int result = point < 0 || clone < 0 || mount_setattr(clone, "", AT_EMPTY_PATH, &flags, sizeof flags) < 0 ? -1 : attach(clone, point);
	close_fd(&clone);
	close_fd(&point);
	return result;
}

static int mount_below_dev(int dev, enum child_step *step)
{
	char terminals[16];
	snprintf(terminals, sizeof terminals, "%d", TERMINALS_MAX);
	const struct option pts[] = {{"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", "5"}, {"max", terminals}, {NULL, NULL}};
	*step = STEP_DEV_PTS;
	int fd = mount_new(dev, "pts", "devpts", pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		return -1;
	close_fd(&fd);
	*step = STEP_DEV_SHM;
	if (mount_shm(dev) < 0)
		return -1;
	*step = STEP_DEV_MQUEUE;
	fd = mount_new(dev, "mqueue", "mqueue", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (fd < 0 && errno != ENODEV) /* a kernel without POSIX queues */
		return -1;
	close_fd(&fd);
	return 0;
}

static int mount_kernel_files(const int given[GO_FDS], const struct cgroup_limits *limits, enum child_step *step)
{
	unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	int root = given[GO_ROOT], dev = given[GO_DEV], proc = -1, sys = -1, point = -1, result = -1;
	bool attached = false;
	*step = STEP_DEV;
	if ((point = open_point(root, "dev")) < 0 || attach(dev, point) < 0 || mount_below_dev(dev, step) < 0)
		goto out;
	*step = STEP_PROC;
	if ((proc = mount_new(root, "proc", "proc", NULL, attributes)) < 0)
		goto out;
	*step = STEP_SYS;
	if ((sys = mount_new(root, "sys", "sysfs", NULL, attributes | MOUNT_ATTR_RDONLY)) < 0)
		goto out;
	*step = STEP_PROC_MASK;
	if (protect_proc(proc, dev, given[GO_EMPTY], &attached) < 0)
		goto out;
	*step = STEP_SYS_MASK;
	if (hide_directories(sys, HIDDEN_SYS, COUNT_OF(HIDDEN_SYS), given[GO_EMPTY], &attached) < 0)
		goto out;
	*step = STEP_FACTS;
	result = mount_facts(proc, sys, dev, limits);
out:
	close_fd(&proc);
	close_fd(&sys);
	close_fd(&point);
	return result;
}

int inside_mount_all(const int given[GO_FDS], const struct cgroup_limits *limits, const char *hostname, enum child_step *step)
{
	if (mount_kernel_files(given, limits, step) < 0)
		return -1;
	*step = STEP_TMP;
	if (make_tmp(given[GO_ROOT]) < 0)
		return -1;
	*step = STEP_ETC;
	return mount_names(given[GO_ROOT], given[GO_DEV], hostname);
}
