/*
 * The launcher's world: what it was started with and what it holds open for its whole life.
 *
 * On disk, below --run:
 *   launcher.sock   where the Edge connects                  lock     one launcher per directory
 *   epoch           newest Edge generation seen              layers/  mount points of the images, named by hash
 *   sandboxes/<id>  the LAUNCH request of every sandbox      tombs/   ids that must not come back
 *   root/           empty: where a sandbox's root is put together, in its own mount namespace
 *   stage/          empty: mount points of old kernels' detours
 *   empty/          an empty directory that is laid over others inside
 */
#ifndef DSEC_LAUNCHER_H
#define DSEC_LAUNCHER_H

#include "cgroup.h"

#include <stdbool.h>
#include <stdint.h>

#define LAUNCHER_VERSION "1"

struct launcher {
	char run[PATH_BYTES];
	char trash[PATH_BYTES]; /* empty: removed upper layers stay where they are */
	char cgroup_name[256];
	int run_fd, layers_fd, records_fd, tombs_fd, root_fd, stage_fd, empty_fd;
	int aether_fd; /* copy of the program, 0711 and root's: runs, but cannot be read or traced from inside a sandbox */
	bool old_kernel; /* take the detours of the oldest supported kernel even where they are not needed */
	struct cgroup_tree cgroups;
	uint64_t epoch;
	bool quitting;
};

extern struct launcher launcher;

#endif
