/*
 * A file that nobody sees until it is whole. It has no name at all where the file system can do that, so that nothing is left
 * of it whoever dies; elsewhere a name of its own in the same directory, removed when the request fails.
 */
#ifndef AETHER_FILES_TEMP_H
#define AETHER_FILES_TEMP_H

enum { TEMP_NAME_BYTES = 32 };

struct temp {
	int fd; /* -1: none */
	int directory; /* borrowed */
	char name[TEMP_NAME_BYTES]; /* empty: it has none */
};

/* 0, or -1 with errno. */
int temp_make(struct temp *temp, int directory);
/* Puts it in the place of `name`, whatever is there except a directory. 0, or -1 with errno; then it is still nobody's. */
int temp_commit(struct temp *temp, const char *name);
/* Closes it; what was not committed is gone. */
void temp_close(struct temp *temp);
/* A name that no user gives. */
void temp_name(char name[TEMP_NAME_BYTES]);
/* Makes `name` in `directory` another name of `from`/`from_name`, in the place of what is there. 0, or -1 with errno. */
int link_over(int from, const char *from_name, int flags, int directory, const char *name);

#endif
