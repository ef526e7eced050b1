/*
 * The process tree of one command, as a cgroup of its own below the payload's v2 directory: `setsid` children and children
 * of children that have died are in it all the same. Where the host has no v2 tree, the tree is what can be found by parent
 * and session in /proc, which misses a child that left its session after its parent had died.
 */
#ifndef AETHER_TREE_H
#define AETHER_TREE_H

#include "walk.h"

#include <sys/types.h>

/* `payload_fd`: the v2 directory, or -1. */
void tree_init(int payload_fd);
int tree_has_cgroups(void);
/* Makes the cgroup of `exec`. A descriptor for clone3, or -1 with errno. */
int tree_make(const char *exec);
/* The group that all workers of files share, made when it is first wanted. A descriptor for clone3, or -1 with errno. */
int tree_open_files(void);
/* SIGKILL to every process of the tree. 1 when there was a tree to kill. */
int tree_kill(const char *exec, pid_t leader);

enum tree_state {
	TREE_GONE,
	TREE_POPULATED, /* it can only become empty by a death that PID 1 sees */
	TREE_LEAVING,   /* nothing is listed any more, but the kernel has not let go yet: try again soon */
};

/* Removes the cgroup when it is empty. */
enum tree_state tree_remove(const char *exec);
/* SIGKILL to what of the tree was started after `since`, never the leader. 1 when there was such a process. */
int tree_kill_since(const char *exec, pid_t leader, const struct moment *since);
/* How many processes of this very cgroup the kernel has killed for memory; -1 when it does not count that. */
int tree_oom_kills(const char *exec);

#endif
