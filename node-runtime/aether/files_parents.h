/* The directory an entry belongs into: beneath the destination, through no symbolic link, made when it is missing. */
#ifndef AETHER_FILES_PARENTS_H
#define AETHER_FILES_PARENTS_H

#include <stddef.h>

/* The directory used last: entries of one directory follow each other. */
struct parents {
	int root;
	int fd; /* -1: none */
	char *path;
	size_t path_length, path_capacity;
};

/*
 * Makes `path` plain in place: no empty and no `.` parts, no slash at either end; the destination itself becomes "".
 * 0, or -1 when it is absolute or has a `..`.
 */
int path_normalise(char *path);

void parents_begin(struct parents *parents, int root);
/* The directory of a normalised path; *name is its last part. `make`: with what is missing of it. A borrowed descriptor, or -1 with errno. */
int parents_open(struct parents *parents, char *path, int make, const char **name);
void parents_end(struct parents *parents);

#endif
