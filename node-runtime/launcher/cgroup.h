/*
 * Control groups of the sandboxes, in the three layouts that hosts have:
 *
 *   v2      one tree with the controllers
 *   v1      a tree per controller
 *   mixed   controllers in v1, and a v2 tree without them: freeze, kill, and groups per command go there
 *
 * Below <hierarchy>/<NAME>/<id>/: Aether in `agent` (v2) or in the directory itself (elsewhere a group may hold processes and
 * children), commands in `payload`, which carries the limits. In the mixed layout's memory hierarchy the directory itself is the payload
 * and Aether is in <NAME>: a memory group is by far the dearest of all, see `cgroup_layout.c`. The v2 payload belongs to the sandbox's root, so that Aether can
 * make a group per command.
 *
 * On v1 a process enters by writing 0 to `tasks`: moving oneself, and one thread, is the only move for which the kernel does not
 * wait for an RCU grace period (5 to 10 ms on an idle machine).
 *
 * INV-GATE: no process of a sandbox does anything before it is in every hierarchy.
 */
#ifndef DSEC_LAUNCHER_CGROUP_H
#define DSEC_LAUNCHER_CGROUP_H

#include "fault.h"
#include "limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_layout { CGROUP_V2, CGROUP_V1, CGROUP_MIXED };

enum {
	CONTROL_MEMORY = 1,
	CONTROL_CPU = 2,
	CONTROL_PIDS = 4,
	CONTROL_CPUACCT = 8,
	CONTROL_FREEZER = 16,
	CONTROL_NEEDED = CONTROL_MEMORY | CONTROL_CPU | CONTROL_PIDS,
};

struct hierarchy {
	bool unified;
	bool flat; /* the sandbox's own directory is its payload; Aether goes back to the group of all, see cgroup_layout.c */
	unsigned controllers;
	char mount[256];
	int fd; /* <mount>/<NAME> */
};

struct cgroup_tree {
	enum cgroup_layout layout;
	int count;
	/* The first says what exists: a sandbox's directory is made there first and removed there last. */
	struct hierarchy list[HIERARCHIES_MAX];
};

struct cgroup_limits {
	uint64_t memory_mib, swap_mib, cpu_millis, cpu_weight, pids;
};

/* What a launch needs open: -1 where the layout has no such thing. */
struct cgroup_handles {
	int birth;       /* v2 directory of the sandbox, for CLONE_INTO_CGROUP */
	int agent_procs; /* v2 with controllers: where Aether moves to, after it has its cgroup namespace */
	int payload;     /* v2 payload directory */
	int oom;         /* the payload's file that counts kills for memory */
	int pids;        /* v1 payload directory of the hierarchy that counts processes */
	/* v1: `tasks` of the sandbox's own directory and of the payload, one pair per hierarchy */
	int entries[HIERARCHIES_MAX], gates[HIERARCHIES_MAX];
	int exits[HIERARCHIES_MAX]; /* where Aether goes back to from a flat hierarchy; -1 in others */
	int gate_count;
};

struct cgroup_stats {
	uint64_t memory_bytes, cpu_usec, pids, oom_kills;
};

struct cgroup_memory {
	uint64_t used_bytes, reclaimable_bytes, file_bytes, swapped_bytes;
};

const char *cgroup_layout_name(enum cgroup_layout layout);
/* Chooses the hierarchies from the text of /proc/self/mountinfo. Pure. -1: a needed controller is nowhere. */
int cgroup_choose(struct cgroup_tree *tree, const char *mountinfo, const char *unified_controllers, bool without_v2);
/* Finds the hierarchies and makes <NAME> in each. */
int cgroup_open(struct cgroup_tree *tree, const char *name, bool without_v2, int scratch_dir, struct fault *fault);
/* Removes <NAME> where it is empty. */
void cgroup_close(struct cgroup_tree *tree, const char *name);

int cgroup_make(const struct cgroup_tree *tree, const char *id, uid_t owner, const struct cgroup_limits *limits, struct fault *fault);
int cgroup_open_handles(const struct cgroup_tree *tree, const char *id, struct cgroup_handles *handles, struct fault *fault);
void cgroup_close_handles(struct cgroup_handles *handles);
/* v2 with controllers: turns them on for the payload; only now does the sandbox's own directory hold no process. Idempotent. */
int cgroup_seal(const struct cgroup_tree *tree, const char *id, const struct cgroup_limits *limits, struct fault *fault);

/* SIGKILL to all of it. */
void cgroup_kill(const struct cgroup_tree *tree, const char *id);
int cgroup_freeze(const struct cgroup_tree *tree, const char *id, bool frozen);
/* Whether the payload has come to the wanted state. -1 with errno. */
int cgroup_is_frozen(const struct cgroup_tree *tree, const char *id);
/* Removes every directory of it. -1 EBUSY while a process or a child group is still there. */
int cgroup_remove(const struct cgroup_tree *tree, const char *id);
/* Aether's process id, or 0. */
pid_t cgroup_first_process(const struct cgroup_tree *tree, const char *id);
int cgroup_read_stats(const struct cgroup_tree *tree, const char *id, struct cgroup_stats *stats);
/* What its payload holds in memory, and how much of it lies in swap. `reclaimable`: private and shared memory, not files. */
int cgroup_read_memory(const struct cgroup_tree *tree, const char *id, struct cgroup_memory *memory);
/*
 * Whether the payload's memory may go to swap: a paused sandbox's may, a running one's only as far as it asked for swap. On v1 the
 * limit is on memory and swap together, which moving pages does not change; there only the kernel's inclination is set.
 */
int cgroup_allow_swap(const struct cgroup_tree *tree, const char *id, bool paused, uint64_t swap_mib);
/* Asks the kernel to take memory from the payload, by whatever way the layout has. Takes long. */
void cgroup_reclaim(const struct cgroup_tree *tree, const char *id, uint64_t bytes);
/* Calls back with every process of the payload; stops at the first nonzero answer and returns it. */
int cgroup_each_process(const struct cgroup_tree *tree, const char *id, int (*visit)(pid_t pid, void *context), void *context);
/* Calls back with the id of every sandbox that has a directory. */
int cgroup_each(const struct cgroup_tree *tree, int (*visit)(const char *id, void *context), void *context);

#endif
