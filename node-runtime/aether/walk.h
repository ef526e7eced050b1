/* The fallback without cgroups: finds a command's processes in /proc by parent and session. */
#ifndef AETHER_WALK_H
#define AETHER_WALK_H

#include <sys/types.h>

/* Kills the leader's session and every descendant that can be found, round after round. 1 when anything was killed. */
int walk_kill(pid_t leader);
/* Parent and session out of the text of /proc/<pid>/stat, whose second field may hold anything. 0, or -1. */
int walk_parse_stat(const char *text, pid_t *parent, pid_t *session);

#endif
