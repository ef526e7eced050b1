/* Files with more than one name that a download has met: the first name stands for all, as far as memory is given for that. */
#ifndef AETHER_FILES_LINKS_H
#define AETHER_FILES_LINKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct link_name;

struct links {
	struct link_name *table; /* open addressing, a power of two */
	size_t used, capacity;
	char *paths;
	size_t paths_length, paths_capacity;
};

enum link_result { LINK_FIRST, LINK_KNOWN, LINK_FORGOTTEN /* there was no room to remember it */ };

/* LINK_KNOWN: *first is the name that this file was met by before; valid until the next call. */
enum link_result links_meet(struct links *links, const struct stat *status, const char *path, const char **first);
void links_free(struct links *links);

#endif
