#include "files_walk.h"

#include "limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct walk_level {
	DIR *stream;
	size_t path_length; /* of the directory itself */
};

enum { LEVELS_FIRST = 16, PATH_FIRST = 512 };

static int push(struct walk *walk, int directory, size_t path_length)
{
	if (walk->depth == walk->capacity) {
		size_t capacity = walk->capacity ? 2 * walk->capacity : LEVELS_FIRST;
		struct walk_level *grown = realloc(walk->levels, capacity * sizeof *grown);
		if (!grown)
			return -1;
		walk->levels = grown;
		walk->capacity = capacity;
	}
	DIR *stream = fdopendir(directory);
	if (!stream)
		return -1;
	walk->levels[walk->depth++] = (struct walk_level){.stream = stream, .path_length = path_length};
	return 0;
}

int walk_begin(struct walk *walk, int root)
{
	*walk = (struct walk){.path = malloc(PATH_FIRST), .path_capacity = PATH_FIRST};
	if (walk->path && push(walk, root, 0) == 0) {
		walk->path[0] = '\0';
		return 0;
	}
	int problem = errno;
	close(root);
	walk_end(walk);
	errno = problem;
	return -1;
}

/* Makes the path end with `name`. 0, or -1 with errno. */
static int set_name(struct walk *walk, size_t above, const char *name)
{
	size_t length = strlen(name), wanted = above + 1 + length + 1;
	if (wanted > walk->path_capacity) {
		char *grown = realloc(walk->path, 2 * wanted);
		if (!grown)
			return -1;
		walk->path = grown;
		walk->path_capacity = 2 * wanted;
	}
	if (above > 0)
		walk->path[above++] = '/';
	memcpy(walk->path + above, name, length + 1);
	return 0;
}

static const char *name_below(const struct walk *walk, size_t above)
{
	return walk->path + above + (above > 0);
}

static enum walk_event leave(struct walk *walk, struct walk_entry *entry)
{
	const struct walk_level *left = &walk->levels[--walk->depth];
	closedir(left->stream);
	walk->path[left->path_length] = '\0';
	if (walk->depth == 0)
		return WALK_END;
	const struct walk_level *above = &walk->levels[walk->depth - 1];
	*entry = (struct walk_entry){.directory = dirfd(above->stream), .name = name_below(walk, above->path_length)};
	return WALK_LEAVE;
}

enum walk_event walk_next(struct walk *walk, struct walk_entry *entry)
{
	if (walk->depth == 0)
		return WALK_END;
	const struct walk_level *level = &walk->levels[walk->depth - 1];
	struct dirent *found;
	do {
		errno = 0;
		found = readdir(level->stream);
	} while (found && (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0));
	if (!found && errno != 0) {
		walk->path[level->path_length] = '\0';
		return WALK_FAILED;
	}
	if (!found)
		return leave(walk, entry);
	if (set_name(walk, level->path_length, found->d_name) < 0)
		return WALK_FAILED;
	*entry = (struct walk_entry){.directory = dirfd(level->stream), .name = name_below(walk, level->path_length)};
	return WALK_ENTRY;
}

int walk_enter(struct walk *walk)
{
	if (walk->depth >= WALK_DEPTH_MAX) {
		errno = E2BIG;
		return -1;
	}
	const struct walk_level *level = &walk->levels[walk->depth - 1];
	int fd = openat(dirfd(level->stream), name_below(walk, level->path_length), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (push(walk, fd, strlen(walk->path)) == 0)
		return 0;
	int problem = errno;
	close(fd);
	errno = problem;
	return -1;
}

void walk_end(struct walk *walk)
{
	while (walk->depth > 0)
		closedir(walk->levels[--walk->depth].stream);
	free(walk->levels);
	free(walk->path);
	*walk = (struct walk){0};
}
