/*
 * Directories of an archive that wait for their mode and time until everything in them is there: those that the archive is in at the
 * moment, one below the other. An archive that comes back to a directory it has left finds it finished, and leaves it the time of its last entry.
 */
#ifndef AETHER_FILES_PENDING_H
#define AETHER_FILES_PENDING_H

#include "files_meta.h"

struct pending_directory;

struct pending {
	struct pending_directory *list;
	size_t count, capacity;
};

/* Takes over the attributes of `meta`. 0, or -1 with errno. */
int pending_push(struct pending *pending, const char *path, const struct meta *meta);
/* Finishes all that `path` does not lie in; NULL: all. 0, or -1 with errno. */
int pending_leave(struct pending *pending, struct meta_rules *rules, int root, const char *path);
void pending_free(struct pending *pending);

#endif
