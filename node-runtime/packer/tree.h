/*
 * What lies in an upper directory, read once: names and attributes into memory, the bytes of files into the data file.
 *
 * Nothing is followed and nothing is interpreted but what attributes.h says. Order is that of the names' bytes, so that equal
 * uppers give equal images. Files that cannot be kept as they are end the program, by name.
 */
#ifndef DSEC_PACKER_TREE_H
#define DSEC_PACKER_TREE_H

#include "attributes.h"
#include "data.h"

#include <stdint.h>
#include <sys/types.h>

struct entry {
	char *name;
	struct inode *inode;
};

struct inode {
	uint64_t key; /* inode number in the upper, by which hard links are found */
	mode_t mode;
	uint32_t uid, gid, links, device, mtime_ns;
	int64_t mtime;
	uint64_t size;
	struct attributes attributes;
	struct entry *entries; /* directories, sorted; `.` and `..` are not among them */
	uint32_t entry_count, directories;
	char *target; /* symbolic links */
	struct chunk_at *chunks;
	uint32_t chunk_count;
	/* where it goes in the image: image.c */
	uint64_t at;
	uint32_t layout, data_block, number;
	struct inode *parent;
};

struct tree_counts {
	uint64_t files, bytes, removed;
};

struct inode *tree_read(int upper, uint32_t first_id, struct tree_counts *counts);

#endif
