#include "images.h"

#include "files.h"
#include "launcher.h"
#include "loop_device.h"
#include "spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
	MOUNT_FLAGS = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME,
};

static struct image *first;
static const char *method;

const struct image *images_first(void)
{
	return first;
}

const char *image_name(const struct image *image)
{
	return image->digest + strlen("sha256:");
}

static struct image *known(const char *digest)
{
	struct image *image = first;
	while (image && strcmp(image->digest, digest) != 0)
		image = image->next;
	return image;
}

struct image *images_find(const char *digest)
{
	struct image *image = known(digest);
	return image && image->mounted ? image : NULL;
}

const char *images_method(void)
{
	struct utsname name;
	int major = 0, minor = 0;
	if (method)
		return method;
	if (launcher.old_kernel || uname(&name) < 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2)
		return "loop";
	return major > 6 || (major == 6 && minor >= 12) ? "file" : "loop";
}

static struct image *remember(const char *digest)
{
	struct image *image = calloc(1, sizeof *image);
	if (!image)
		return NULL;
	snprintf(image->digest, sizeof image->digest, "%s", digest);
	image->next = first;
	first = image;
	return image;
}

/* Drops what is neither mounted nor used. */
static void tidy(struct image *image)
{
	if (image->mounted || image->users > 0)
		return;
	struct image **link = &first;
	while (*link != image)
		link = &(*link)->next;
	*link = image->next;
	free(image);
}

struct image *images_hold(const char *digest)
{
	struct image *image = known(digest);
	if (image || (image = remember(digest)))
		image->users++;
	return image;
}

void images_release(struct image *image)
{
	image->users--;
	tidy(image);
}

static int adopt(const char *name, void *context)
{
	struct fault *fault = context;
	char digest[7 + 64 + 1];
	struct statx status;
	if ((size_t)snprintf(digest, sizeof digest, "sha256:%s", name) >= sizeof digest || !is_digest(digest))
		return 0;
	if (statx(launcher.layers_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &status) < 0)
		return fault_errno(fault, "look at layers");
	if (!(status.stx_attributes & STATX_ATTR_MOUNT_ROOT)) {
		unlinkat(launcher.layers_fd, name, AT_REMOVEDIR); /* from a namespace that is gone */
		return 0;
	}
	struct image *image = remember(digest);
	if (!image)
		return fault_errno(fault, "remember image");
	image->mounted = true;
	return 0;
}

int images_adopt(struct fault *fault)
{
	return each_name(launcher.layers_fd, adopt, fault);
}

/* `files`: the image itself, then the data files that it stands on, in the order of its own table. */
static int mount_files(char *const *files, int count, const char *target)
{
	int context = fsopen("erofs", FSOPEN_CLOEXEC), mounted = -1, result = -1;
	bool is_set = context >= 0 && fsconfig(context, FSCONFIG_SET_STRING, "source", files[0], 0) == 0 && fsconfig(context, FSCONFIG_SET_FLAG, "ro", NULL, 0) == 0;
	for (int i = 1; is_set && i < count; i++)
		is_set = fsconfig(context, FSCONFIG_SET_STRING, "device", files[i], 0) == 0;
	if (is_set && fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mounted = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_FLAGS);
	if (mounted >= 0)
		result = move_mount(mounted, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH);
	int error = errno;
	close_fd(&mounted);
	close_fd(&context);
	errno = error;
	return result;
}

static int mount_by_loop(char *const *files, int count, const char *target)
{
	char paths[1 + IMAGE_DEVICES_MAX][32], *devices[1 + IMAGE_DEVICES_MAX] = {NULL};
	int held[1 + IMAGE_DEVICES_MAX], taken = 0, result = -1;
	for (; taken < count; taken++) {
		int file = open(files[taken], O_RDONLY | O_CLOEXEC);
		held[taken] = file < 0 ? -1 : loop_device_take(file, LOOP_DEVICE_READ_ONLY, paths[taken], sizeof paths[taken]);
		close_fd(&file);
		if (held[taken] < 0)
			break;
		devices[taken] = paths[taken];
	}
	if (taken == count)
		result = mount_files(devices, count, target);
	int error = errno;
	while (taken > 0)
		close_fd(&held[--taken]); /* the mount holds the devices now, or they go */
	errno = error;
	if (result == 0)
		method = "loop";
	return result;
}

/* A kernel without file-backed EROFS says ENOTBLK, as it does for a file on a tmpfs. */
static int mount_image(char *const *files, int count, const char *target)
{
	if (!launcher.old_kernel) {
		if (mount_files(files, count, target) == 0) {
			method = "file";
			return 0;
		}
		if (errno != ENOTBLK)
			return -1;
	}
	return mount_by_loop(files, count, target);
}

static int check_files(char *const *files, int count, struct fault *fault)
{
	struct stat status;
	for (int i = 0; i < count; i++)
		if (stat(files[i], &status) < 0 || !S_ISREG(status.st_mode))
			return fault_set(fault, CODE_MISSING, "open image", errno, "image file %s is not there", files[i]);
	return 0;
}

int images_mount(const char *digest, char *const *files, int count, struct fault *fault)
{
	if (images_find(digest))
		return 0;
	if (check_files(files, count, fault) < 0)
		return -1;
	struct image *image = known(digest);
	if (!image && !(image = remember(digest)))
		return fault_errno(fault, "remember image");
	char point[PATH_BYTES + 80];
	snprintf(point, sizeof point, "%s/layers/%s", launcher.run, image_name(image));
	if (ensure_dir(AT_FDCWD, point, 0755) == 0 && mount_image(files, count, point) == 0) {
		image->mounted = true;
		return 0;
	}
	fault_errno(fault, "mount image");
	rmdir(point);
	tidy(image);
	return -1;
}

int images_unmount(const char *digest, struct fault *fault)
{
	char point[PATH_BYTES + 80];
	struct image *image = images_find(digest);
	if (!image)
		return 0;
	if (image->users > 0)
		return fault_set(fault, CODE_BUSY, "unmount image", EBUSY, "image %s has %d users; destroy those sandboxes first", digest, image->users);
	snprintf(point, sizeof point, "%s/layers/%s", launcher.run, image_name(image));
	if (umount2(point, UMOUNT_NOFOLLOW) < 0)
		return errno == EBUSY ? fault_set(fault, CODE_BUSY, "unmount image", EBUSY, "image %s is in use", digest) : fault_errno(fault, "unmount image");
	rmdir(point);
	image->mounted = false;
	tidy(image);
	return 0;
}

void images_close(void)
{
	char point[PATH_BYTES + 80];
	for (const struct image *image = first; image; image = image->next) {
		snprintf(point, sizeof point, "%s/layers/%s", launcher.run, image_name(image));
		umount2(point, MNT_DETACH | UMOUNT_NOFOLLOW);
		rmdir(point);
	}
}
