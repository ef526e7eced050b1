/* Where an upper lies: a directory of the host, or in the sandbox's own disk, which nobody has mounted where it could be found. */
#ifndef DSEC_PACKER_SOURCE_H
#define DSEC_PACKER_SOURCE_H

/* A descriptor of the upper directory at `path`. */
int source_open_directory(const char *path);
/*
 * The same in the disk whose image is `image` and which the sandbox has mounted: one more look at the same mounted file system,
 * so that nothing has to be written out first.
 */
int source_open_disk(const char *image);

#endif
