#include "files_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail_with(int error_number)
{
	errno = error_number;
	return -1;
}

static int reopen(int *directory, const char *path)
{
	int opened = openat(*directory, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (opened < 0)
		return -1;
	if (*directory >= 0)
		close(*directory);
	*directory = opened;
	return 0;
}

/* Splits off the last name, without slashes behind it. `path` is cut. NULL for a path that has none: "/", ".", "a/..". */
static char *split_last(char *path, const char **directory)
{
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		path[--length] = '\0';
	char *slash = strrchr(path, '/');
	char *name = slash ? slash + 1 : path;
	*directory = slash == path ? "/" : slash ? path : ".";
	if (slash && slash != path)
		*slash = '\0';
	return *name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? NULL : name;
}

/* Moves to where `path`, seen from the place's directory, says. `path` is cut. */
static int go(struct place *place, char *path)
{
	const char *directory;
	char *name = split_last(path, &directory);
	if (!name)
		return fail_with(EBUSY); /* what rename(2) and unlink(2) say to a name that is none */
	if (reopen(&place->directory, directory) < 0)
		return -1;
	strcpy(place->name, name);
	return 0;
}

int place_find(const char *path, struct place *out)
{
	char copy[PATH_BYTES];
	out->directory = -1;
	if (path[0] != '/')
		return fail_with(EINVAL);
	if (strlen(path) >= sizeof copy)
		return fail_with(ENAMETOOLONG);
	return go(out, strcpy(copy, path));
}

int place_follow(const char *path, struct place *out)
{
	char target[PATH_BYTES];
	struct stat status;
	size_t length = strlen(path);
	out->directory = -1;
	if (length > 0 && path[length - 1] == '/')
		return fail_with(EISDIR); /* what open(2) says to whoever would make such a file */
	if (place_find(path, out) < 0)
		return -1;
	for (int links = 0; links < LINKS_MAX; links++) {
		if (fstatat(out->directory, out->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : -1;
		if (!S_ISLNK(status.st_mode))
			return 0;
		ssize_t length = readlinkat(out->directory, out->name, target, sizeof target - 1);
		if (length < 0)
			return -1;
		target[length] = '\0';
		if (go(out, target) < 0)
			return errno == EBUSY ? fail_with(EISDIR) : -1;
	}
	return fail_with(ELOOP);
}

void place_close(struct place *place)
{
	if (place->directory >= 0)
		close(place->directory);
	place->directory = -1;
}

int make_parents(const char *path)
{
	char copy[PATH_BYTES];
	size_t length = strlen(path);
	if (length >= sizeof copy)
		return fail_with(ENAMETOOLONG);
	memcpy(copy, path, length + 1);
	while (length > 1 && copy[length - 1] == '/')
		copy[--length] = '\0';
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			return -1;
		*slash = '/';
	}
	return 0;
}

static int open_piece(int directory, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	for (;;) {
		int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN) /* EAGAIN: a rename happened meanwhile */
			return fd;
	}
}

/* Where to cut a path that the kernel would not take whole; NULL when it does. */
static char *cut_of(char *path)
{
	if (strlen(path) < PATH_BYTES)
		return NULL;
	for (char *at = path + PATH_BYTES - 2; at > path; at--)
		if (*at == '/')
			return at;
	return NULL;
}

int open_beneath(int root, char *path, int flags)
{
	int directory = root;
	for (char *cut; (cut = cut_of(path)); path = cut + 1) {
		*cut = '\0';
		int next = open_piece(directory, path, O_PATH | O_DIRECTORY);
		int problem = errno;
		*cut = '/';
		if (directory != root)
			close(directory);
		if (next < 0)
			return fail_with(problem);
		directory = next;
	}
	int fd = open_piece(directory, *path ? path : ".", flags);
	int problem = errno;
	if (directory != root)
		close(directory);
	errno = problem;
	return fd;
}
