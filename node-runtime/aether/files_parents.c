#include "files_parents.h"

#include "files_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether it stays where it starts, whatever is there. */
static int is_inside(const char *path)
{
	if (path[0] == '/')
		return 0;
	for (const char *at = path; *at;) {
		size_t length = strcspn(at, "/");
		if (length == 2 && at[0] == '.' && at[1] == '.')
			return 0;
		at += length;
		at += *at == '/';
	}
	return 1;
}

int path_normalise(char *path)
{
	char *to = path;
	if (!is_inside(path))
		return -1; /* unchanged: it will be shown to somebody */
	for (char *from = path; *from;) {
		size_t length = strcspn(from, "/");
		if (length > 0 && !(length == 1 && from[0] == '.')) {
			if (to != path)
				*to++ = '/';
			memmove(to, from, length);
			to += length;
		}
		from += length;
		from += *from == '/';
	}
	*to = '\0';
	return 0;
}

void parents_begin(struct parents *parents, int root)
{
	*parents = (struct parents){.root = root, .fd = -1};
}

static void forget(struct parents *parents)
{
	if (parents->fd >= 0)
		close(parents->fd);
	parents->fd = -1;
}

void parents_end(struct parents *parents)
{
	forget(parents);
	free(parents->path);
}

/* One part after the other from the top, as deep as something was missing. */
static int make_all(int root, char *path)
{
	int at = root;
	for (char *part = path; at >= 0 && *part;) {
		char *slash = strchr(part, '/');
		if (slash)
			*slash = '\0';
		int next = open_beneath(at, part, O_PATH | O_DIRECTORY);
		if (next < 0 && errno == ENOENT && (mkdirat(at, part, 0755) == 0 || errno == EEXIST))
			next = open_beneath(at, part, O_PATH | O_DIRECTORY);
		int problem = errno;
		if (slash)
			*slash = '/';
		if (at != root)
			close(at);
		errno = problem;
		at = next;
		part = slash ? slash + 1 : part + strlen(part);
	}
	return at == root ? open_beneath(root, path, O_PATH | O_DIRECTORY) : at;
}

static int remember(struct parents *parents, const char *path, size_t length, int fd)
{
	if (length + 1 > parents->path_capacity) {
		char *grown = realloc(parents->path, 2 * (length + 1));
		if (!grown) {
			close(fd);
			return -1;
		}
		parents->path = grown;
		parents->path_capacity = 2 * (length + 1);
	}
	memcpy(parents->path, path, length);
	parents->path_length = length;
	parents->fd = fd;
	return fd;
}

int parents_open(struct parents *parents, char *path, int make, const char **name)
{
	char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;
	*name = slash ? slash + 1 : path;
	if (parents->fd >= 0 && parents->path_length == length && memcmp(parents->path, path, length) == 0)
		return parents->fd;
	forget(parents);
	char kept = path[length];
	path[length] = '\0';
	int fd = open_beneath(parents->root, path, O_PATH | O_DIRECTORY);
	if (fd < 0 && errno == ENOENT && make)
		fd = make_all(parents->root, path);
	if (fd >= 0)
		fd = remember(parents, path, length, fd);
	int problem = errno;
	path[length] = kept;
	errno = problem;
	return fd;
}
