/* What the control groups know: who is there, and what it has used. */
#include "cgroup_paths.h"
#include "files.h"
#include "spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const char *agent_procs(const struct cgroup_tree *tree)
{
	return tree->layout == CGROUP_V2 ? "agent/cgroup.procs" : "cgroup.procs";
}

/* v1 only: a command's process starts in Aether's group and moves on at once, so the list may briefly hold both. */
static bool is_namespace_init(int pid)
{
	char path[40], text[CONTROL_FILE_BYTES];
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	if (read_text(AT_FDCWD, path, text, sizeof text) < 0)
		return false;
	const char *line = strstr(text, "\nNSpid:");
	int outer, inner;
	return line && sscanf(line, "\nNSpid: %d %d", &outer, &inner) == 2 && inner == 1;
}

pid_t cgroup_first_process(const struct cgroup_tree *tree, const char *id)
{
	struct cgroup_path path;
	char text[CONTROL_FILE_BYTES];
	const struct hierarchy *hierarchy = primary(tree);
	if (read_text(hierarchy->fd, below(&path, id, agent_procs(tree)), text, sizeof text) <= 0)
		return 0;
	char *at = text;
	for (long pid; (pid = strtol(at, &at, 10)) > 0;)
		if (hierarchy->unified || is_namespace_init((int)pid))
			return (pid_t)pid;
	return 0;
}

/* Both read a file of the payload. */
static uint64_t read_number(const struct hierarchy *hierarchy, const char *id, const char *file)
{
	struct cgroup_path path;
	char text[32];
	if (!hierarchy || read_text(hierarchy->fd, payload(&path, hierarchy, id, file), text, sizeof text) <= 0)
		return 0;
	return strtoull(text, NULL, 10);
}

/* The number after `key` at the start of a line. */
static uint64_t read_field(const struct hierarchy *hierarchy, const char *id, const char *file, const char *key)
{
	struct cgroup_path path;
	char text[CONTROL_FILE_BYTES];
	size_t length = strlen(key);
	if (!hierarchy || read_text(hierarchy->fd, payload(&path, hierarchy, id, file), text, sizeof text) <= 0)
		return 0;
	for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (strncmp(line, key, length) == 0 && line[length] == ' ')
			return strtoull(line + length, NULL, 10);
	return 0;
}

int cgroup_read_stats(const struct cgroup_tree *tree, const char *id, struct cgroup_stats *stats)
{
	const struct hierarchy *unified = unified_of(tree), *memory = with_controller(tree, CONTROL_MEMORY), *pids = with_controller(tree, CONTROL_PIDS);
	if (!file_exists(memory->fd, id)) {
		errno = ENOENT;
		return -1;
	}
	bool v2 = tree->layout == CGROUP_V2;
	stats->memory_bytes = read_number(memory, id, v2 ? "memory.current" : "memory.usage_in_bytes");
	stats->oom_kills = read_field(memory, id, v2 ? "memory.events" : "memory.oom_control", "oom_kill");
	stats->pids = read_number(pids, id, "pids.current");
	/* the v2 core counts time without its cpu controller too */
	stats->cpu_usec = unified ? read_field(unified, id, "cpu.stat", "usage_usec")
				  : read_number(with_controller(tree, CONTROL_CPUACCT), id, "cpuacct.usage") / 1000;
	return 0;
}

struct visit {
	int (*visit)(const char *id, void *context);
	void *context;
};

static int visit_group(const char *name, void *context)
{
	const struct visit *visit = context;
	return is_sandbox_id(name) ? visit->visit(name, visit->context) : 0;
}

int cgroup_each(const struct cgroup_tree *tree, int (*visit)(const char *id, void *context), void *context)
{
	struct visit inner = {visit, context};
	return each_name(primary(tree)->fd, visit_group, &inner);
}
