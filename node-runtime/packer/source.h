/* Where an upper lies: a directory of the host, or in the sandbox's own disk, which nobody has mounted where it could be found. */
#ifndef DSEC_PACKER_SOURCE_H
#define DSEC_PACKER_SOURCE_H

/* Descriptors of the upper directory, and of the overlay's work directory beside it; that is -1 where there is none. */
struct source {
	int upper, work;
};

/* Of the upper directory at `path`. */
struct source source_open_directory(const char *path);
/*
 * The same in the disk whose image is `image` and which the sandbox has mounted: one more look at the same mounted file system,
 * so that nothing has to be written out first.
 */
struct source source_open_disk(const char *image);

#endif
