#include "disk.h"

#include "files.h"
#include "loop_device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nothing of it outlives a power cut, so nothing waits for the disk. noinit_itable: a thread that fills in tables would fill sparse files. */
static const char *const FLAGS[] = {"nobarrier", "noauto_da_alloc", "noinit_itable", "discard"};

static int copy_range(int from, int to, off_t start, off_t end)
{
	for (off_t in = start, out = start; in < end;) {
		ssize_t copied = copy_file_range(from, &in, to, &out, (size_t)(end - in), 0);
		if (copied <= 0) {
			errno = copied == 0 ? EIO : errno;
			return -1;
		}
	}
	return 0;
}

/* An empty file system is a few blocks here and there in a hole of any size. */
static int copy_data(int from, int to)
{
	struct stat status;
	if (fstat(from, &status) < 0 || ftruncate(to, status.st_size) < 0)
		return -1;
	for (off_t start = 0, end; (start = lseek(from, start, SEEK_DATA)) >= 0; start = end)
		if ((end = lseek(from, start, SEEK_HOLE)) < 0 || copy_range(from, to, start, end) < 0)
			return -1;
	return errno == ENXIO ? 0 : -1; /* nothing but a hole follows */
}

/* Written aside, then renamed: an image that is there is whole. */
static int make_image(const struct launch_spec *spec, struct fault *fault)
{
	char aside[PATH_BYTES + 8];
	snprintf(aside, sizeof aside, "%s.new", spec->disk);
	int template = open(spec->disk_template, O_RDONLY | O_CLOEXEC);
	if (template < 0)
		return fault_set(fault, errno == ENOENT ? CODE_BUSY : CODE_FAILED, "open disk template", errno, "disk template %s: %s; ask again with one that is there",
				 spec->disk_template, strerror(errno));
	int image = open(aside, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int result = image < 0 || copy_data(template, image) < 0 || rename(aside, spec->disk) < 0 ? fault_errno(fault, "make disk image") : 0;
	if (result < 0)
		unlink(aside);
	close_fd(&image);
	close_fd(&template);
	return result;
}

/* The lock belongs to the open file, which the loop device shares: it is held until the device lets go of the image. */
static int open_image(const struct launch_spec *spec, struct fault *fault)
{
	if (access(spec->disk, F_OK) < 0 && make_image(spec, fault) < 0)
		return -1;
	int image = open(spec->disk, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (image < 0)
		return fault_errno(fault, "open disk image");
	if (flock(image, LOCK_EX | LOCK_NB) == 0)
		return image;
	close_fd(&image);
	return fault_set(fault, CODE_BUSY, "lock disk image", errno, "the disk of %s is still being let go by its last run; ask again", spec->id);
}

static int mount_device(const char *device, struct fault *fault)
{
	int context = fsopen("ext4", FSOPEN_CLOEXEC), mounted = -1;
	bool is_set = context >= 0 && fsconfig(context, FSCONFIG_SET_STRING, "source", device, 0) == 0;
	for (size_t i = 0; is_set && i < sizeof FLAGS / sizeof *FLAGS; i++)
		is_set = fsconfig(context, FSCONFIG_SET_FLAG, FLAGS[i], NULL, 0) == 0;
	if (is_set && fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mounted = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
	if (mounted < 0)
		fault_errno(fault, "mount disk image");
	close_fd(&context);
	return mounted;
}

int disk_open(const struct launch_spec *spec, struct fault *fault)
{
	char path[32];
	int image = open_image(spec, fault);
	if (image < 0)
		return -1;
	int device = loop_device_take(image, LOOP_DEVICE_WRITABLE, path, sizeof path);
	int mounted = device < 0 ? fault_errno(fault, "take loop device") : mount_device(path, fault);
	close_fd(&device);
	close_fd(&image);
	return mounted;
}
