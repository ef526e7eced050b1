#include "facts.h"

#include "beneath.h"
#include "files.h"
#include "names.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char ONLINE[] = "devices/system/cpu/online";

static struct {
	unsigned long long memory_mib;
	unsigned processors;
	char *cpuinfo; /* or NULL */
} machine;

static char *read_cpuinfo(void)
{
	char *text = malloc(CPUINFO_BYTES);
	int file = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	ssize_t length = 0, got = 0;
	while (text && file >= 0 && length < CPUINFO_BYTES - 1 && (got = read(file, text + length, (size_t)(CPUINFO_BYTES - 1 - length))) > 0)
		length += got;
	close_fd(&file);
	if (text)
		text[length] = '\0';
	return text;
}

void facts_learn(void)
{
	machine.memory_mib = ((unsigned long long)sysconf(_SC_PHYS_PAGES) * (unsigned long long)sysconf(_SC_PAGESIZE)) >> 20;
	machine.processors = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	machine.cpuinfo = read_cpuinfo();
}

size_t facts_meminfo(char *out, size_t size, const struct cgroup_limits *limits)
{
	static const char *const NOTHING[] = {"Buffers", "Cached", "SwapCached", "Active", "Inactive", "Dirty", "Writeback", "AnonPages", "Mapped",
					      "Shmem",	 "Slab",   "SReclaimable", "SUnreclaim"};
	unsigned long long memory = limits->memory_mib << 10, swap = limits->swap_mib << 10;
	int used = snprintf(out, size, "%-15s %8llu kB\n%-15s %8llu kB\n%-15s %8llu kB\n", "MemTotal:", memory, "MemFree:", memory, "MemAvailable:", memory);
	for (size_t i = 0; i < sizeof NOTHING / sizeof *NOTHING; i++) {
		char key[24];
		snprintf(key, sizeof key, "%s:", NOTHING[i]);
		used += snprintf(out + used, size - (size_t)used, "%-15s %8d kB\n", key, 0);
	}
	used += snprintf(out + used, size - (size_t)used, "%-15s %8llu kB\n%-15s %8llu kB\n", "SwapTotal:", swap, "SwapFree:", swap);
	return (size_t)used;
}

/* Each processor is a paragraph; what follows the last one, on some machines, is about all of them. */
size_t facts_cpuinfo(const char *text, unsigned count)
{
	const char *at = text;
	for (unsigned seen = 0; seen < count; seen++) {
		const char *gap = strstr(at, "\n\n");
		if (!gap)
			return strlen(text);
		at = gap + 2;
	}
	return (size_t)(at - text);
}

/* A kernel without the file has nothing to cover. */
static int lay(int root, const char *path, int dev, const char *text, size_t length)
{
	int point = open_beneath(root, path, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH, 0);
	if (point < 0)
		return errno == ENOENT ? 0 : -1;
	int result = lay_text(dev, point, strrchr(path, '/') ? strrchr(path, '/') + 1 : path, text, length);
	close_fd(&point);
	return result;
}

static int lay_meminfo(int proc, int dev, const struct cgroup_limits *limits)
{
	char text[1024];
	if (limits->memory_mib >= machine.memory_mib)
		return 0;
	return lay(proc, "meminfo", dev, text, facts_meminfo(text, sizeof text, limits));
}

/* A fraction of a processor still needs one. */
static unsigned processors_for(uint64_t cpu_millis)
{
	return (unsigned)((cpu_millis + 999) / 1000);
}

int mount_facts(int proc, int sys, int dev, const struct cgroup_limits *limits)
{
	char list[24];
	unsigned count = processors_for(limits->cpu_millis);
	if (lay_meminfo(proc, dev, limits) < 0)
		return -1;
	if (count >= machine.processors)
		return 0;
	size_t length = (size_t)(count == 1 ? snprintf(list, sizeof list, "0\n") : snprintf(list, sizeof list, "0-%u\n", count - 1));
	if (lay(sys, ONLINE, dev, list, length) < 0)
		return -1;
	return machine.cpuinfo ? lay(proc, "cpuinfo", dev, machine.cpuinfo, facts_cpuinfo(machine.cpuinfo, count)) : 0;
}
