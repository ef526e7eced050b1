/* The file systems of a sandbox, mounted from inside below its future root. 0, or -1 with errno and the step in *step. */
#ifndef DSEC_LAUNCHER_INSIDE_H
#define DSEC_LAUNCHER_INSIDE_H

#include "child.h"

/* `given`: what came with the go-ahead. */
int inside_mount_all(const int given[GO_FDS], const struct cgroup_limits *limits, const char *hostname, enum child_step *step);

#endif
