/*
 * Paths and mounts below a directory that is not trusted: an image may hold a symbolic link to anywhere. Every path is resolved
 * below the directory's descriptor.
 */
#ifndef DSEC_LAUNCHER_BENEATH_H
#define DSEC_LAUNCHER_BENEATH_H

#include <stdint.h>
#include <sys/types.h>

/* openat2; O_CLOEXEC is added. */
int open_beneath(int root, const char *path, uint64_t flags, uint64_t resolve, mode_t mode);
/* A mount point, made when the image has none. A link is an error. */
int open_point(int root, const char *path);
/* Moves a detached mount to an open mount point. */
int attach(int mounted, int point);

#endif
