/* One entry of an archive on its way into the destination. */
#ifndef AETHER_FILES_UNPACKING_H
#define AETHER_FILES_UNPACKING_H

#include "files_archive_in.h"
#include "files_meta.h"
#include "files_parents.h"
#include "files_pending.h"

struct unpacking {
	struct upload upload;
	struct parents parents;
	struct pending pending;
	struct meta_rules rules;
	struct pax_buffer globals;
	uint64_t bytes, entries;
	uint64_t whole_bytes; /* of entries that are in their place */
	int root_is_new, root_was_named; /* an entry `./` changes nothing that was there */
};

/* UNSAFE, BAD and FAILED (errno) are told with the entry's name. */
enum outcome { DONE = 0, BROKEN = -1, FAILED = -2, UNSAFE = -3, BAD = -4 };

struct meta meta_of(const struct entry_in *entry);
/* Makes what the entry says as `name` in `directory`, in the place of what is there. */
enum outcome unpack_file(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name);
enum outcome unpack_symlink(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name);
enum outcome unpack_hard_link(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name);
enum outcome unpack_directory(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name);
/* UNSAFE when a path led out or through a link, by errno; else FAILED. */
enum outcome unpack_refusal(void);

#endif
