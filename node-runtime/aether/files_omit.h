/* What of a tree is not carried: each told by name until there are too many names, all of them counted. */
#ifndef AETHER_FILES_OMIT_H
#define AETHER_FILES_OMIT_H

#include "files_channel.h"

struct omissions {
	uint64_t count;
	size_t named_bytes;
};

/* CHANNEL_OK, or CHANNEL_GONE. */
enum channel_result omit(struct omissions *omissions, enum file_omission what, const char *path);

#endif
