#include "files_pending.h"

#include "files_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pending_directory {
	char *path;
	struct meta meta;
};

enum { PENDING_FIRST = 16 };

int pending_push(struct pending *pending, const char *path, const struct meta *meta)
{
	struct pending_directory waiting = {.path = strdup(path), .meta = *meta};
	if (waiting.path && pending->count == pending->capacity) {
		size_t capacity = pending->capacity ? 2 * pending->capacity : PENDING_FIRST;
		struct pending_directory *grown = realloc(pending->list, capacity * sizeof *grown);
		if (grown) {
			pending->list = grown;
			pending->capacity = capacity;
		}
	}
	if (!waiting.path || pending->count == pending->capacity) {
		free(waiting.path);
		free(waiting.meta.xattrs.bytes);
		errno = ENOMEM;
		return -1;
	}
	pending->list[pending->count++] = waiting;
	return 0;
}

static int lies_in(const char *path, const char *directory)
{
	size_t length = strlen(directory);
	return length == 0 || (strncmp(path, directory, length) == 0 && path[length] == '/');
}

static void drop(struct pending_directory *waiting)
{
	free(waiting->path);
	free(waiting->meta.xattrs.bytes);
}

static int finish(struct pending_directory *waiting, struct meta_rules *rules, int root)
{
	int fd = open_beneath(root, waiting->path, O_RDONLY | O_DIRECTORY);
	int result = fd < 0 ? -1 : meta_apply(rules, &waiting->meta, fd, waiting->path);
	int problem = errno;
	if (fd >= 0)
		close(fd);
	errno = problem;
	return result;
}

int pending_leave(struct pending *pending, struct meta_rules *rules, int root, const char *path)
{
	while (pending->count > 0) {
		struct pending_directory *last = &pending->list[pending->count - 1];
		if (path && lies_in(path, last->path))
			return 0;
		int result = finish(last, rules, root);
		int problem = errno;
		drop(last);
		pending->count--;
		errno = problem;
		if (result < 0)
			return -1;
	}
	return 0;
}

void pending_free(struct pending *pending)
{
	while (pending->count > 0)
		drop(&pending->list[--pending->count]);
	free(pending->list);
	*pending = (struct pending){0};
}
