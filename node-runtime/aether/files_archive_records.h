/* What extended headers say about the entry behind them. */
#ifndef AETHER_FILES_ARCHIVE_RECORDS_H
#define AETHER_FILES_ARCHIVE_RECORDS_H

#include "files_sparse_in.h"

/* What extended headers said, before the entry's own header is seen. */
struct extended {
	int began; /* what is said of all entries has been taken */
	int has_size, has_uid, has_gid, has_time;
	uint64_t size;
	struct sparse_in sparse;
};

/* Copies `length` bytes as a path of the entry. ARCHIVE_ENTRY, ARCHIVE_BAD when they cannot be one, or ARCHIVE_FAILED. */
enum archive_result entry_set_text(char **to, const char *from, size_t length);
/* 0 when one of the records cannot be meant for every entry (a name, a size, a map of holes), or is none. */
int records_are_global(const char *bytes, size_t length);
/* Takes over all records of a PAX header. An empty value takes back what was said before. */
enum archive_result entry_take_records(const char *bytes, size_t length, struct entry_in *entry, struct extended *extended);

#endif
