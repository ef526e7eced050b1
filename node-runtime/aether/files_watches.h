/* Which directory an inotify watch stands for. */
#ifndef AETHER_FILES_WATCHES_H
#define AETHER_FILES_WATCHES_H

#include <stddef.h>

struct watched {
	int watch;
	char *path; /* relative to the top, "" for the top itself */
};

/* Ordered by number, which the kernel gives ascending. */
struct watches {
	int inotify;
	struct watched *list;
	size_t count, capacity;
};

/* Watches what `path` (relative to the working directory; "" for it itself) names. 0, or -1 with errno: EMFILE when there are too many. */
int watches_add(struct watches *watches, const char *path, unsigned mask);
/* NULL when there is none. */
const char *watches_path(const struct watches *watches, int watch);
/* The kernel has let go of it. */
void watches_drop(struct watches *watches, int watch);
/* Lets go of a directory and all below it: it has another name now. */
void watches_drop_below(struct watches *watches, const char *path);
void watches_free(struct watches *watches);

#endif
