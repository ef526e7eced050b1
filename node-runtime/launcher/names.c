#include "names.h"

#include "beneath.h"
#include "files.h"
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int make_tmp(int root)
{
	struct stat status;
	if (mkdirat(root, "tmp", 01777) < 0 && errno != EEXIST)
		return -1;
	int tmp = open_beneath(root, "tmp", O_RDONLY | O_DIRECTORY, RESOLVE_IN_ROOT, 0);
	if (tmp < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -1; /* a link to nowhere: as the image wants it */
	int result = fstat(tmp, &status) < 0 || ((status.st_mode & 07777) != 01777 && fchmod(tmp, 01777) < 0) ? -1 : 0;
	close_fd(&tmp);
	return result;
}

static int make_file(int dir, const char *name, const char *text, size_t length)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -1;
	ssize_t written = write(fd, text, length);
	close_fd(&fd);
	return written == (ssize_t)length ? 0 : -1;
}

/* The file in /etc to lay ours over; a link is followed within the image. Made empty when there is none. */
static int open_name_point(int root, const char *path)
{
	int point = open_beneath(root, path, O_PATH, RESOLVE_IN_ROOT, 0);
	if (point >= 0 || errno != ENOENT)
		return point;
	int made = open_beneath(root, path, O_WRONLY | O_CREAT, RESOLVE_IN_ROOT, 0644);
	if (made < 0)
		return -1;
	close_fd(&made);
	return open_beneath(root, path, O_PATH, RESOLVE_IN_ROOT, 0);
}

int lay_text(int dev, int point, const char *name, const char *text, size_t length)
{
	int clone = make_file(dev, name, text, length) < 0 ? -1 : open_tree(dev, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int result = clone < 0 || attach(clone, point) < 0 || unlinkat(dev, name, 0) < 0 ? -1 : 0;
	close_fd(&clone);
	return result;
}

/*
 * As Docker does: what the image says is about the machine on which it was built, and what we say must not end up in a snapshot.
 * The file lives in the tmpfs of /dev and loses its name there once it is mounted.
 */
static int lay_over(int root, int dev, const char *path, const char *text)
{
	int point = open_name_point(root, path);
	if (point < 0)
		return errno == ENOENT || errno == ELOOP ? 0 : -1; /* a link to nowhere: as the image wants it */
	int result = lay_text(dev, point, strrchr(path, '/') + 1, text, strlen(text));
	close_fd(&point);
	return result;
}

int mount_names(int root, int dev, const char *hostname)
{
	char hosts[256], name[HOSTNAME_BYTES + 1];
	snprintf(hosts, sizeof hosts, "127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost ip6-loopback\n", hostname);
	snprintf(name, sizeof name, "%s\n", hostname);
	if (mkdirat(root, "etc", 0755) < 0 && errno != EEXIST)
		return -1;
	return lay_over(root, dev, "etc/hosts", hosts) < 0 || lay_over(root, dev, "etc/hostname", name) < 0 ||
			       lay_over(root, dev, "etc/resolv.conf", "# This sandbox reaches no name server.\n") < 0
		       ? -1
		       : 0;
}
