#include "overlay.h"

#include "files.h"
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

/*
 * Kernels before 6.15 take no detached mount as a layer, those before 6.5 no `lowerdir+`: there the clones, and the sandbox's own
 * disk, are attached below stage/ for a moment, and the clones named by one short list.
 */
static bool old_way_works;

struct lowers {
	int fd[LAYERS_MAX];
	int count;
};

/* The image as the sandbox shall see it: its root is the sandbox's root. */
static int clone_mapped(const struct image *image, int userns)
{
	int fd = open_tree(launcher.layers_fd, image_name(image), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return -1;
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY, .userns_fd = (uint64_t)userns};
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
		close_fd(&fd);
	return fd;
}

static int set_fd_path(int context, const char *key, int fd)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return fsconfig(context, FSCONFIG_SET_STRING, key, path, 0);
}

static int set_lowers(int context, const struct lowers *lowers)
{
	for (int i = lowers->count - 1; i >= 0; i--) /* the topmost comes first */
		if (set_fd_path(context, "lowerdir+", lowers->fd[i]) < 0)
			return -1;
	return 0;
}

static int set_staged_lowers(int context, const struct lowers *lowers)
{
	char list[256] = "", name[16];
	for (int i = lowers->count - 1; i >= 0; i--) {
		snprintf(name, sizeof name, "%d", i);
		if (ensure_dir(launcher.stage_fd, name, 0700) < 0 || move_mount(lowers->fd[i], "", launcher.stage_fd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return -1;
		size_t used = strlen(list);
		snprintf(list + used, sizeof list - used, "%s%s", used ? ":" : "", name);
	}
	return fsconfig(context, FSCONFIG_SET_STRING, "lowerdir", list, 0);
}

/* The upper's descriptor follows its mount. */
static int stage_disk(int disk)
{
	if (disk < 0)
		return 0;
	return ensure_dir(launcher.stage_fd, "disk", 0700) < 0 ? -1 : move_mount(disk, "", launcher.stage_fd, "disk", MOVE_MOUNT_F_EMPTY_PATH);
}

static void unstage_one(const char *name)
{
	char path[PATH_BYTES + 32];
	snprintf(path, sizeof path, "%s/stage/%s", launcher.run, name);
	umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW); /* the overlay holds clones of its own */
	rmdir(path);
}

static void unstage(int count)
{
	char name[16];
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof name, "%d", i);
		unstage_one(name);
	}
	unstage_one("disk");
}

/*
 * volatile: closing a sandbox must not sync the node's disk. redirect_dir: renaming a directory of the image works as it does on a
 * plain disk. metacopy off: an upper is complete, so that it can become a layer. index: what is written through one name of a file with
 * several is seen through all of them; the packer gives the upper those that are still names of a layer below (packer/links.h).
 */
static int configure(int context, int upper, int work)
{
	return fsconfig(context, FSCONFIG_SET_STRING, "source", "overlay", 0) < 0 || set_fd_path(context, "upperdir", upper) < 0 || set_fd_path(context, "workdir", work) < 0 ||
			       fsconfig(context, FSCONFIG_SET_STRING, "redirect_dir", "on", 0) < 0 ||
			       fsconfig(context, FSCONFIG_SET_STRING, "metacopy", "off", 0) < 0 ||
			       fsconfig(context, FSCONFIG_SET_STRING, "index", "on", 0) < 0 ||
			       fsconfig(context, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0 ||
			       fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0
		       ? -1
		       : 0;
}

/* What the file system itself says about its refusal. */
static int overlay_fault(int context, struct fault *fault)
{
	char said[160];
	int error = errno;
	ssize_t length = read(context, said, sizeof said - 1);
	if (length <= 0)
		return errno = error, fault_errno(fault, "make overlay");
	said[length] = '\0';
	said[strcspn(said, "\n")] = '\0';
	errno = error;
	fault_errno(fault, "make overlay");
	snprintf(fault->message, sizeof fault->message, "make overlay: %s (%s)", strerror(error), said);
	return -1;
}

static int create(const struct lowers *lowers, bool staged, const struct storage *storage, struct fault *fault)
{
	int context = fsopen("overlay", FSOPEN_CLOEXEC), result = -1;
	if (context < 0)
		return fault_errno(fault, "open overlay");
	if (staged && fchdir(launcher.stage_fd) < 0)
		fault_errno(fault, "enter stage");
	else if (staged && stage_disk(storage->disk) < 0)
		fault_errno(fault, "stage disk");
	else if ((staged ? set_staged_lowers(context, lowers) : set_lowers(context, lowers)) < 0 || configure(context, storage->upper, storage->work) < 0 ||
		 (result = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV)) < 0) /* an image may hold device nodes */
		overlay_fault(context, fault);
	close_fd(&context);
	if (staged) {
		unstage(lowers->count);
		if (fchdir(launcher.root_fd) < 0) { /* where the next child expects to be */
			fault_errno(fault, "leave stage");
			close_fd(&result);
		}
	}
	return result;
}

static int create_either_way(const struct lowers *lowers, const struct storage *storage, struct fault *fault)
{
	if (!old_way_works && !launcher.old_kernel) {
		int result = create(lowers, false, storage, fault);
		/* the overlay of a launch that died with its launcher is still being taken apart, and with an index an upper has one overlay */
		for (int tries = 0; result < 0 && fault->error == EBUSY && tries < UPPER_TRIES; tries++) {
			nanosleep(&(struct timespec){.tv_nsec = UPPER_TRY_MS * 1000000L}, NULL);
			result = create(lowers, false, storage, fault);
		}
		if (result >= 0 || fault->error != EINVAL)
			return result;
	}
	int result = create(lowers, true, storage, fault);
	old_way_works = old_way_works || result >= 0;
	return result;
}

int overlay_make(struct image *const *images, int count, const struct storage *storage, int userns, struct fault *fault)
{
	struct lowers lowers = {.count = 0};
	int result = -1;
	while (lowers.count < count) {
		int fd = clone_mapped(images[lowers.count], userns);
		if (fd < 0)
			break;
		lowers.fd[lowers.count++] = fd;
	}
	if (lowers.count < count)
		fault_errno(fault, "map image ids");
	else
		result = create_either_way(&lowers, storage, fault);
	while (lowers.count > 0)
		close_fd(&lowers.fd[--lowers.count]);
	return result;
}
