/*
 * What an archive says about a file beside its content, in the one order that works: a change of owner takes set-id bits and file
 * capabilities away, any change moves the time.
 */
#ifndef AETHER_FILES_META_H
#define AETHER_FILES_META_H

#include "files_omit.h"
#include "tar_pax.h"

#include <sys/stat.h>

struct meta {
	mode_t mode;
	uint64_t uid, gid;
	int64_t modified_s;
	uint32_t modified_ns;
	struct pax_buffer xattrs; /* owned */
};

struct meta_rules {
	int owners; /* keep the archive's */
	struct omissions omissions;
	int gone; /* nobody is there to be told */
};

/* To an open file or directory. What cannot be kept is told under `path`. 0, or -1 with errno. */
int meta_apply(struct meta_rules *rules, const struct meta *meta, int fd, const char *path);
/* To a symbolic link: owner and time are all that it has. */
int meta_apply_link(struct meta_rules *rules, const struct meta *meta, int directory, const char *name, const char *path);

#endif
