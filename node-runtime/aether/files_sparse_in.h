/* The maps of sparse files in archives, in the four forms that GNU tar has written. */
#ifndef AETHER_FILES_SPARSE_IN_H
#define AETHER_FILES_SPARSE_IN_H

#include "files_archive_in.h"
#include "tar_block.h"

struct sparse_in {
	int has_name;
	int has_map, map_follows; /* in records (0.0, 0.1); at the head of the content (1.0) */
	uint64_t major, real_size;
	int has_real_size;
	uint64_t next_offset; /* 0.0: an offset waits for its length */
	int offset_waits;
};

/* A `GNU.sparse.` record. 0 when it is malformed. */
int sparse_in_record(struct sparse_in *sparse, const struct pax_record *record, struct pieces *pieces);
/* Reads what of the map lies in the content, and checks all of it. */
enum archive_result sparse_in_begin(struct sparse_in *sparse, struct upload *upload, const struct tar_header *header, struct entry_in *entry);

#endif
