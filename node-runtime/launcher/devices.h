/* /dev of a sandbox: a small tmpfs with the nodes that Docker gives. Made outside, where nodes may be made. */
#ifndef DSEC_LAUNCHER_DEVICES_H
#define DSEC_LAUNCHER_DEVICES_H

#include "fault.h"

#include <sys/types.h>

/* A detached mount whose contents belong to `owner`, or -1. pts, shm and mqueue in it are empty directories. */
int devices_make(uid_t owner, struct fault *fault);

#endif
