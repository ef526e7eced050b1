/* Everything between the command line and the first event: directories, lock, namespace, Aether's copy, cgroups, adoption. */
#ifndef DSEC_LAUNCHER_SETUP_H
#define DSEC_LAUNCHER_SETUP_H

#include "fault.h"

#include <stdbool.h>

struct options {
	const char *run, *cgroup, *trash, *spread, *aether;
	int mount_ns; /* -1: a new one */
	bool without_v2, old_kernel;
};

int set_up(const struct options *options, struct fault *fault);

#endif
