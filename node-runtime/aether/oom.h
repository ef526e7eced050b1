/*
 * Kills for memory in this sandbox, as the kernel counts them for all commands together. The file comes from the launcher;
 * without it nothing is ever counted.
 */
#ifndef AETHER_OOM_H
#define AETHER_OOM_H

#include <stdint.h>

/* `fd`: `memory.events` (v2) or `memory.oom_control` (v1) of the payload, or anything else when there is none. */
void oom_init(int fd);
/* Kills so far. */
uint64_t oom_count(void);
/* How many came after the count was `since` and are nobody's yet; from now on they are the caller's. */
uint64_t oom_claim(uint64_t since);
/* The number of kills in the text of such a file. 0, or -1 when there is none. */
int oom_parse(const char *text, uint64_t *kills);

#endif
