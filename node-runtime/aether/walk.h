/* The fallback without cgroups: finds a command's processes in /proc by parent and session. */
#ifndef AETHER_WALK_H
#define AETHER_WALK_H

#include <stdint.h>
#include <sys/types.h>

/* Kills the leader's session and every descendant that can be found, round after round. 1 when anything was killed. */
int walk_kill(pid_t leader);

/* A point in the row of processes: the kernel's clock of starts counts hundredths of a second, within one the numbers decide. */
struct moment {
	uint64_t ticks;
	pid_t last_pid; /* given to a process by then; 0: not known */
};

struct moment walk_moment(void);
int walk_started_since(pid_t pid, const struct moment *since);
/* As tree_kill_since. */
int walk_kill_since(pid_t leader, const struct moment *since);
struct process_stat {
	pid_t parent, session;
	uint64_t started_ticks; /* since boot */
};

/* Out of the text of /proc/<pid>/stat, whose second field may hold anything. 0, or -1. */
int walk_parse_stat(const char *text, struct process_stat *out);

#endif
