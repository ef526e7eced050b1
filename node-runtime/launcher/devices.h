/* /dev of a sandbox: a small tmpfs with the nodes that Docker gives. Made outside, where nodes may be made. */
#ifndef DSEC_LAUNCHER_DEVICES_H
#define DSEC_LAUNCHER_DEVICES_H

#include "fault.h"

#include <stdint.h>
#include <sys/types.h>

/*
 * A detached mount whose contents belong to `owner`, or -1. pts, shm and mqueue in it are empty directories. It holds as much as half of
 * the memory limit, as a tmpfs takes of a machine, because /dev/shm is a part of it.
 */
int devices_make(uid_t owner, uint64_t memory_mib, struct fault *fault);

#endif
