/* Extended attributes of a file, as a list of names and values. */
#ifndef AETHER_FILES_XATTR_H
#define AETHER_FILES_XATTR_H

#include <stddef.h>

struct xattr {
	const char *name;
	const void *value;
	size_t length;
};

/* Looks at one attribute. Anything but 0 ends the walk. */
typedef int xattr_taker(const struct xattr *attribute, void *context);
/* `take` for each attribute of an open file. Its last result; -1 with errno when they cannot be had; 0 where there are none. */
int xattr_each(int fd, xattr_taker *take, void *context);

/* From one file to another, but for file capabilities, which belong to a content. 0, or -1 with errno. */
int xattr_copy(int from, int to);

#endif
