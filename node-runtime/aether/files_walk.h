/*
 * A walk through a tree without recursion: its depth is the sandbox's choice. Names are looked up in open directories, so neither
 * a long path nor a link that is put in the way meanwhile leads anywhere else.
 */
#ifndef AETHER_FILES_WALK_H
#define AETHER_FILES_WALK_H

#include <stddef.h>

struct walk_level;

struct walk {
	struct walk_level *levels;
	size_t depth, capacity;
	char *path; /* of the current entry, relative to the root, without a leading slash */
	size_t path_capacity;
};

enum walk_event {
	WALK_END = 0,
	WALK_ENTRY = 1,   /* `name` in `directory`: not entered, if it is a directory, until walk_enter */
	WALK_LEAVE = 2,   /* all of a directory was seen; `directory` is its parent */
	WALK_FAILED = -1, /* errno; `path` says where */
};

struct walk_entry {
	int directory;
	const char *name;
};

/* Takes over `root`, an open directory. 0, or -1 with errno. */
int walk_begin(struct walk *walk, int root);
enum walk_event walk_next(struct walk *walk, struct walk_entry *entry);
/* Goes into the entry that walk_next gave last. 0, or -1 with errno: E2BIG when it is too deep; the walk goes on beside it. */
int walk_enter(struct walk *walk);
void walk_end(struct walk *walk);

#endif
