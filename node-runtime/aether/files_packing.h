/* One thing of a tree on its way into an archive: its headers, its content, or the reason why it stays behind. */
#ifndef AETHER_FILES_PACKING_H
#define AETHER_FILES_PACKING_H

#include "files_links.h"
#include "files_omit.h"
#include "tar_pax.h"

#include <sys/stat.h>

/* PACKING_FAILED: errno says why. PACKING_GONE: nobody is there to be told. */
enum packed { PACKED = 0, PACKING_GONE = -1, PACKING_FAILED = -2 };

struct packing {
	struct links links;
	struct omissions omissions;
	uint64_t bytes, entries;
	char *path; /* of a directory, with a slash behind it */
	size_t path_capacity;
	struct pax_buffer extended;
	int plain; /* for a reader who keeps nothing that makes a file more than his own */
	int left_attributes;
	struct stat plain_status;
};

/* One thing to pack: a name in a directory, and what it is called in the archive. */
struct item {
	int directory;
	const char *name, *path;
	struct stat status;
};

enum packed pack_item(struct packing *packing, struct item *item);
enum packed pack_omit(struct packing *packing, enum file_omission what, const char *path);
/* The directory or file could not be entered or opened because it is gone by now, or another one. */
int pack_vanished(void);
void packing_free(struct packing *packing);

#endif
