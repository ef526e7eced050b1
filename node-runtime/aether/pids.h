/*
 * The limit of processes on v1, where the kernel stops who forks inside a group and not who joins it: without this, each command and
 * each files worker would come on top of a full sandbox. On v2 the clone into the group is refused by itself, and all of this says no.
 */
#ifndef AETHER_PIDS_H
#define AETHER_PIDS_H

/* `directory`: the payload's in the v1 hierarchy that counts, or anything else where there is none. */
void pids_init(int directory);
/* Whether a process that is about to join is one too many. */
int pids_are_full(void);
/* Whether it was one too many, asked by itself after it has joined: others may have been faster. */
int pids_are_over(void);

#endif
