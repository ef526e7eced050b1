#include "files_links.h"

#include "limits.h"

#include <stdlib.h>
#include <string.h>

struct link_name {
	uint64_t device, inode;
	uint32_t path; /* where it begins, + 1; 0: a free place */
};

enum { TABLE_FIRST = 256, PATHS_FIRST = 16 * 1024 };

static struct link_name *place_of(struct link_name *table, size_t capacity, uint64_t device, uint64_t inode)
{
	size_t at = (size_t)((inode * 0x9e3779b97f4a7c15ull) ^ device);
	for (;; at++) {
		struct link_name *place = &table[at & (capacity - 1)];
		if (place->path == 0 || (place->inode == inode && place->device == device))
			return place;
	}
}

static int grow_table(struct links *links)
{
	size_t capacity = links->capacity ? 2 * links->capacity : TABLE_FIRST;
	struct link_name *grown = calloc(capacity, sizeof *grown);
	if (!grown)
		return -1;
	for (size_t at = 0; at < links->capacity; at++)
		if (links->table[at].path != 0)
			*place_of(grown, capacity, links->table[at].device, links->table[at].inode) = links->table[at];
	free(links->table);
	links->table = grown;
	links->capacity = capacity;
	return 0;
}

static int make_room(struct links *links, size_t bytes)
{
	if (links->used >= HARD_LINKS_MAX || links->paths_length + bytes > HARD_LINK_PATH_BYTES)
		return -1;
	if (2 * (links->used + 1) > links->capacity && grow_table(links) < 0)
		return -1;
	if (links->paths_length + bytes <= links->paths_capacity)
		return 0;
	size_t capacity = 2 * (links->paths_length + bytes) + PATHS_FIRST;
	char *grown = realloc(links->paths, capacity);
	if (!grown)
		return -1;
	links->paths = grown;
	links->paths_capacity = capacity;
	return 0;
}

enum link_result links_meet(struct links *links, const struct stat *status, const char *path, const char **first)
{
	size_t bytes = strlen(path) + 1;
	if (links->capacity > 0) {
		const struct link_name *known = place_of(links->table, links->capacity, status->st_dev, status->st_ino);
		if (known->path != 0) {
			*first = links->paths + known->path - 1;
			return LINK_KNOWN;
		}
	}
	if (make_room(links, bytes) < 0)
		return LINK_FORGOTTEN;
	struct link_name *place = place_of(links->table, links->capacity, status->st_dev, status->st_ino);
	*place = (struct link_name){.device = status->st_dev, .inode = status->st_ino, .path = (uint32_t)links->paths_length + 1};
	memcpy(links->paths + links->paths_length, path, bytes);
	links->paths_length += bytes;
	links->used++;
	return LINK_FIRST;
}

void links_free(struct links *links)
{
	free(links->table);
	free(links->paths);
	*links = (struct links){0};
}
