/* The parent's side of starting a process: its pipes, its cgroup, clone3. */
#ifndef AETHER_SPAWN_H
#define AETHER_SPAWN_H

#include "child.h"

#include <sys/types.h>

/* v1 gates that every command passes; descriptors first…first+count-1. */
void spawn_init(int first_gate, int gate_count);

/* Forks into a v2 cgroup (-1: into ours). As fork(2), EAGAIN when the sandbox has all its processes. */
pid_t spawn_clone(int cgroup_fd);
/* In a child: enters the v1 groups of commands. 0, or -1 with errno, EAGAIN when it was one too many. */
int spawn_pass_gates(void);

/* Our ends of a new process's pipes, or of its terminal (no stderr then): non-blocking, close-on-exec. */
struct spawned {
	pid_t pid;
	int stdin_fd; /* -1 when the request wants no input */
	int stdout_fd, stderr_fd, report_fd;
};

/* FAILED_NOT and *out, or why not (errno); then nothing is left but the cgroup, which is the caller's. */
enum start_failure spawn_command(const struct start_request *request, int cgroup_fd, struct spawned *out);

#endif
