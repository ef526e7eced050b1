/* Every bound of the packer, with where the number comes from. */
#ifndef DSEC_PACKER_LIMITS_H
#define DSEC_PACKER_LIMITS_H

enum {
	/* EROFS images of this project have the page size of every machine that they are for. */
	BLOCK_BYTES = 4096,
	/*
	 * Unit of sharing between files and snapshots. Smaller finds more and costs 8 bytes in the image and 16 in the data file for each;
	 * with 64 KiB a changed page costs 64 KiB and 1 GiB costs 384 KiB of tables.
	 */
	CHUNK_BYTES = 65536,
	CHUNK_BLOCKS = CHUNK_BYTES / BLOCK_BYTES,
	/* Read and compared at a time. */
	READ_BYTES = 16 * CHUNK_BYTES,
	/*
	 * Files from this size on are shared with the upper where the file system can: one call each, which waits until what is dirty of
	 * that file is on the disk. Smaller ones are read faster than that.
	 */
	SHARE_BYTES_MIN = 4 * CHUNK_BYTES,
	/* Hashed at a time: stays in the processor's own cache. */
	HASH_BYTES = 256 * 1024,
	/* Files of one upper: two million cost some 700 MB here; the largest public development images hold 1.5 million. */
	FILES_MAX = 2000000,
	/* Directories below each other: one descriptor and one stack frame each. A path that a program can use has 2,048 at most. */
	DEPTH_MAX = 4096,
	/* Data files that one image may stand on: each is a file that the node must have open. */
	DEVICES_MAX = 64,
	/* Linux allows 64 KiB for one attribute's value and for the list of names. */
	XATTR_BYTES = 65536,
	/* What EROFS can count: 65,535 units of four bytes. */
	XATTRS_BYTES = 65535 * 4,
	/* Rules of one scrub, components of one rule. */
	RULES_MAX = 256,
	RULE_PARTS_MAX = 32,
	/* Removed paths that are told one by one; the rest is counted. */
	REMOVED_TOLD_MAX = 1000,
	/* Ids of a sandbox: launcher/limits.h. */
	ID_RANGE_SIZE = 65536,
};

#endif
