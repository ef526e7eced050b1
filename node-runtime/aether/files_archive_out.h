/*
 * Entries of an archive on their way out: PAX, with extended headers for what the plain ones cannot say (nanoseconds, long names,
 * large numbers, attributes), holes as GNU's sparse format 1.0, which other readers know too.
 */
#ifndef AETHER_FILES_ARCHIVE_OUT_H
#define AETHER_FILES_ARCHIVE_OUT_H

#include "files_channel.h"
#include "files_holes.h"
#include "tar_pax.h"

#include <sys/stat.h>

struct entry_out {
	const char *path;
	const char *link; /* target of a symbolic or hard link, or NULL */
	char type;
	const struct stat *status;
	uint64_t size;               /* bytes of content that follow */
	const struct pieces *pieces; /* of a sparse file, or NULL */
	struct pax_buffer *extended; /* records made so far; freed by the caller */
};

/* The headers, and the map of a sparse file. `size` bytes of content and its padding are the caller's to write. 1 on success, 0 without memory, -1 when the Edge has gone. */
int archive_put_entry(struct entry_out *entry);
enum channel_result archive_put_padding(uint64_t size);
/* Two empty blocks. */
enum channel_result archive_put_end(void);

#endif
