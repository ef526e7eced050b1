/* The fallback without cgroups: finds a command's processes in /proc by parent and session. */
#ifndef AETHER_WALK_H
#define AETHER_WALK_H

#include <stdint.h>
#include <sys/types.h>

/* Kills the leader's session and every descendant that can be found, round after round. 1 when anything was killed. */
int walk_kill(pid_t leader);
/* As tree_kill_younger. */
int walk_kill_younger(pid_t leader, int64_t younger_ms);
/* Milliseconds since it was started, in steps of 10; INT64_MAX when that cannot be told. */
int64_t walk_age_ms(pid_t pid);
struct process_stat {
	pid_t parent, session;
	uint64_t started_ticks; /* since boot */
};

/* Out of the text of /proc/<pid>/stat, whose second field may hold anything. 0, or -1. */
int walk_parse_stat(const char *text, struct process_stat *out);

#endif
