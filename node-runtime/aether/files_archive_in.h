/*
 * Entries of an archive on their way in: tar in all its common forms (old, ustar, GNU with long names and sparse files, PAX with
 * sparse 0.0, 0.1 and 1.0 and attributes). It is whatever a client sends: every number and length is checked, memory is bounded
 * by limits.h, and names are only read here, not used. What it says of a file and nothing here can keep is marked in `left_out`.
 */
#ifndef AETHER_FILES_ARCHIVE_IN_H
#define AETHER_FILES_ARCHIVE_IN_H

#include "files_channel.h"
#include "files_holes.h"
#include "tar_pax.h"

#include <sys/types.h>

/* Facts of an entry that are not kept: each is told under its path. */
enum left_out {
	LEFT_ACL = 1,    /* access control list as text */
	LEFT_XATTR = 2,  /* attribute in a form that is not read here */
	LEFT_FLAGS = 4,  /* file flags (immutable, no dump) */
	LEFT_RECORD = 8, /* record that nobody here knows */
};

struct entry_in {
	char type;         /* as in the header; '0' for a regular file in any form */
	char *path, *link; /* bytes; owned */
	mode_t mode;
	uint64_t uid, gid;
	int64_t modified_s;
	uint32_t modified_ns;
	uint64_t size;   /* of the file */
	uint64_t stored; /* bytes of content in the archive, still to be taken */
	uint64_t padding;
	int sparse;
	struct pieces pieces; /* of a sparse file */
	struct pax_buffer xattrs; /* records, names as the archive writes them */
	unsigned left_out; /* set of enum left_out */
};

enum archive_result {
	ARCHIVE_ENTRY = 1,
	ARCHIVE_END = 0,
	ARCHIVE_BAD = -1,    /* not a whole tar archive; the entry has the path, if any was known */
	ARCHIVE_BROKEN = -2, /* the connection broke */
	ARCHIVE_FAILED = -3, /* errno */
};

/*
 * The next entry; frees the one before. What is left of its content is skipped. `globals` begins empty, collects what the archive says
 * of all entries that follow, and is the caller's to free.
 */
enum archive_result archive_next(struct upload *upload, struct pax_buffer *globals, struct entry_in *entry);
/* The next bytes of the content, up to `most`; 0 when the connection broke or the archive ended too early. */
size_t archive_content(struct upload *upload, struct entry_in *entry, size_t most, const uint8_t **bytes);
void entry_free(struct entry_in *entry);

#endif
