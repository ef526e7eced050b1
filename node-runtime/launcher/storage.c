#include "storage.h"

#include "disk.h"
#include "files.h"
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void parent_of(const char *path, char parent[PATH_BYTES])
{
	snprintf(parent, PATH_BYTES, "%s", path);
	char *slash = strrchr(parent, '/');
	slash[slash == parent] = '\0';
}

/*
 * Nobody but root passes through what lies above the three directories; Aether and the overlay have descriptors. The trash must be
 * reached by a rename, which is found out before anything is made.
 */
static int make_parent(const char *upper, struct fault *fault)
{
	char parent[PATH_BYTES];
	struct stat status, trash;
	parent_of(upper, parent);
	if (ensure_dir(AT_FDCWD, parent, 0700) < 0)
		return fault_errno(fault, "make directory of sandbox");
	if (!launcher.trash[0] || stat(parent, &status) < 0 || stat(launcher.trash, &trash) < 0 || status.st_dev == trash.st_dev)
		return 0;
	rmdir(parent);
	return fault_set(fault, CODE_INVALID, "check trash", EXDEV, "%s and the trash %s lie on different file systems", parent, launcher.trash);
}

/* mkdir, owner and mode, open. *existed: it was there before. */
static int own_dir(int dir, const char *path, mode_t mode, uid_t owner, bool *existed)
{
	*existed = mkdirat(dir, path, mode) < 0;
	if (*existed && errno != EEXIST)
		return -1;
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	struct stat status;
	if (fstat(fd, &status) < 0 || (status.st_uid != owner && fchown(fd, owner, owner) < 0) || ((status.st_mode & 07777) != mode && fchmod(fd, mode) < 0))
		close_fd(&fd);
	return fd;
}

/* A volatile overlay marks its work directory, so that nobody trusts the upper after a power cut. Sandboxes do not outlive one. */
static void clear_volatile_mark(int work)
{
	unlinkat(work, "work/incompat/volatile/dirty", 0);
	unlinkat(work, "work/incompat/volatile", AT_REMOVEDIR);
	unlinkat(work, "work/incompat", AT_REMOVEDIR);
}

/* Upper and work, where the spec says or at the root of the sandbox's own disk. */
static int open_layer(struct storage *storage, const struct launch_spec *spec, mode_t root_mode, struct fault *fault)
{
	int dir = spec->disk ? storage->disk : AT_FDCWD;
	const char *upper = spec->disk ? "upper" : spec->upper, *work = spec->disk ? "work" : spec->work;
	uid_t owner = spec_owner(spec->slot);
	bool existed;
	/* an upper that is there may hold a root directory whose mode the sandbox has changed: it is kept as it is */
	struct stat status;
	mode_t mode = fstatat(dir, upper, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_mode & 07777 : root_mode;
	if ((storage->upper = own_dir(dir, upper, mode, owner, &existed)) < 0)
		return fault_errno(fault, "make upper directory");
	if ((storage->work = own_dir(dir, work, 0700, owner, &existed)) < 0)
		return fault_errno(fault, "make work directory");
	if (existed)
		clear_volatile_mark(storage->work);
	return 0;
}

int storage_open(struct storage *storage, const struct launch_spec *spec, mode_t root_mode, struct fault *fault)
{
	uid_t owner = spec_owner(spec->slot);
	bool existed;
	*storage = (struct storage){-1, -1, -1, -1};
	if (make_parent(spec->upper, fault) < 0 || (spec->disk && (storage->disk = disk_open(spec, fault)) < 0))
		return -1;
	if (open_layer(storage, spec, root_mode, fault) < 0)
		return -1;
	storage->exec_dir = own_dir(AT_FDCWD, spec->exec_dir, 0700, owner, &existed);
	return storage->exec_dir < 0 ? fault_errno(fault, "make exec directory") : 0;
}

void storage_close(struct storage *storage)
{
	close_fd(&storage->upper);
	close_fd(&storage->work);
	close_fd(&storage->exec_dir);
	close_fd(&storage->disk);
}

int storage_discard(const char *id, const char *path, const char *what, struct fault *fault)
{
	char target[PATH_BYTES + 128];
	if (!launcher.trash[0])
		return 0;
	for (int try = 0; try < TRASH_NAMES_MAX; try++) {
		snprintf(target, sizeof target, "%s/%s.%s.%d", launcher.trash, id, what, try);
		if (renameat2(AT_FDCWD, path, AT_FDCWD, target, RENAME_NOREPLACE) == 0 || errno == ENOENT)
			return 0;
		if (errno != EEXIST)
			break;
	}
	if (errno == EXDEV && access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	return fault_errno(fault, "move to trash");
}

void storage_tidy(const char *upper, const char *exec_dir)
{
	char parent[PATH_BYTES];
	parent_of(upper, parent);
	rmdir(exec_dir);
	rmdir(parent);
}
