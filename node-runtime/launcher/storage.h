/*
 * The directories of one sandbox on the node's disk: upper and work for the overlay, exec for what Aether records. With a disk limit
 * upper and work lie in a file system of their own (disk.h); exec never does, so that a full sandbox can still be worked in.
 */
#ifndef DSEC_LAUNCHER_STORAGE_H
#define DSEC_LAUNCHER_STORAGE_H

#include "fault.h"
#include "spec.h"

struct storage {
	int upper, work, exec_dir;
	int disk; /* the detached mount of its own file system, or -1 */
};

/* Makes what is missing, gives it to the sandbox's root, and opens it. `root_mode`: what / of the base image has. */
int storage_open(struct storage *storage, const struct launch_spec *spec, mode_t root_mode, struct fault *fault);
void storage_close(struct storage *storage);
/* Moves a directory out of the way, under a name that nobody has used. Missing is as good. */
int storage_discard(const char *id, const char *path, const char *what, struct fault *fault);
/* Removes what is empty of the rest. */
void storage_tidy(const char *upper, const char *exec_dir);

#endif
