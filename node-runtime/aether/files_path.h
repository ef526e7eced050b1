/*
 * From names to descriptors. A worker sees what a command of its user would see, so a name of the caller is resolved by
 * the kernel as it is; what an archive names is resolved beneath the archive's destination, through no symbolic link.
 */
#ifndef AETHER_FILES_PATH_H
#define AETHER_FILES_PATH_H

#include "limits.h"

/* A place in a directory: where something is made, replaced or removed. */
struct place {
	int directory; /* owned; -1 when none */
	char name[PATH_BYTES];
};

/* The directory of an absolute path and its last name; a last symbolic link is not followed. 0, or -1 with errno. */
int place_find(const char *path, struct place *out);
/* As `place_find`, and then on through symbolic links to where the file really is or would be. */
int place_follow(const char *path, struct place *out);
void place_close(struct place *place);

/* Makes the directories above `path` that are missing. 0, or -1 with errno. */
int make_parents(const char *path);

/*
 * Opens `path` (relative) beneath `root`, crossing no symbolic link, however long it is. ELOOP: a link lies in the way; EXDEV: it
 * leads out. `path` is cut up during the call and whole again afterwards.
 */
int open_beneath(int root, char *path, int flags);

#endif
