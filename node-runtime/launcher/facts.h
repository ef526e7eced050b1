/*
 * What /proc and /sys say of memory and processors, where the sandbox may use less than the machine has: files with the limits
 * instead, laid over once. Programs size their heaps and pools by them. They do not change with use: MemAvailable is that of an
 * empty sandbox. 0, or -1 with errno.
 */
#ifndef DSEC_LAUNCHER_FACTS_H
#define DSEC_LAUNCHER_FACTS_H

#include "cgroup.h"

#include <stddef.h>

/* Reads the machine once; what a sandbox's first process inherits is what it tells. */
void facts_learn(void);
int mount_facts(int proc, int sys, int dev, const struct cgroup_limits *limits);

/* Pure: the text of each file. Return its length. */
size_t facts_meminfo(char *out, size_t size, const struct cgroup_limits *limits);
/* The first `count` processors of a /proc/cpuinfo, as far as they fit. */
size_t facts_cpuinfo(const char *text, unsigned count);

#endif
