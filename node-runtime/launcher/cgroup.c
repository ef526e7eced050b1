#include "cgroup.h"

#include "files.h"
#include "spec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CPU_PERIOD_USEC = 100000 };

struct path {
	char text[ID_BYTES + 64];
};

static const char *below(struct path *path, const char *id, const char *rest)
{
	snprintf(path->text, sizeof path->text, "%s/%s", id, rest);
	return path->text;
}

static const struct hierarchy *with_controller(const struct cgroup_tree *tree, unsigned controller)
{
	for (int i = 0; i < tree->count; i++)
		if (tree->list[i].controllers & controller)
			return &tree->list[i];
	return NULL;
}

static const struct hierarchy *unified_of(const struct cgroup_tree *tree)
{
	return tree->list[0].unified ? &tree->list[0] : NULL;
}

static const struct hierarchy *primary(const struct cgroup_tree *tree)
{
	return &tree->list[0];
}

static const char *agent_procs(const struct cgroup_tree *tree)
{
	return tree->layout == CGROUP_V2 ? "agent/cgroup.procs" : "cgroup.procs";
}

/* Making ------------------------------------------------------------------------------------------------------ */

static int write_v1_limits(const struct hierarchy *hierarchy, const char *id, const struct cgroup_limits *limits)
{
	struct path path;
	if (hierarchy->controllers & CONTROL_MEMORY) {
		unsigned long long bytes = limits->memory_mib << 20;
		if (write_control_number(hierarchy->fd, below(&path, id, "payload/memory.limit_in_bytes"), bytes) < 0)
			return -1;
		/* memory and swap together: no more in all; a kernel without swap accounting has no such file */
		if (write_control_number(hierarchy->fd, below(&path, id, "payload/memory.memsw.limit_in_bytes"), bytes) < 0 && errno != ENOENT)
			return -1;
	}
	if (hierarchy->controllers & CONTROL_CPU) {
		if (write_control_number(hierarchy->fd, below(&path, id, "payload/cpu.cfs_period_us"), CPU_PERIOD_USEC) < 0)
			return -1;
		if (write_control_number(hierarchy->fd, below(&path, id, "payload/cpu.cfs_quota_us"), limits->cpu_millis * CPU_PERIOD_USEC / 1000) < 0)
			return -1;
	}
	if (hierarchy->controllers & CONTROL_PIDS)
		return write_control_number(hierarchy->fd, below(&path, id, "payload/pids.max"), limits->pids);
	return 0;
}

/* The common ancestor of Aether's group and a command's must be the sandbox's too, or the kernel refuses the move. */
static int delegate(const struct hierarchy *unified, const char *id, uid_t owner)
{
	static const char *const FILES[] = {"cgroup.procs", "payload", "payload/cgroup.procs", "payload/cgroup.threads", "payload/cgroup.subtree_control"};
	struct path path;
	for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
		if (fchownat(unified->fd, below(&path, id, FILES[i]), owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
			return -1;
	return 0;
}

int cgroup_make(const struct cgroup_tree *tree, const char *id, uid_t owner, const struct cgroup_limits *limits, struct fault *fault)
{
	struct path path;
	for (int i = 0; i < tree->count; i++) {
		const struct hierarchy *hierarchy = &tree->list[i];
		if (ensure_dir(hierarchy->fd, id, 0755) < 0 || ensure_dir(hierarchy->fd, below(&path, id, "payload"), 0755) < 0)
			return fault_errno(fault, "make cgroup");
		if (tree->layout == CGROUP_V2 && ensure_dir(hierarchy->fd, below(&path, id, "agent"), 0755) < 0)
			return fault_errno(fault, "make agent cgroup");
		if (!hierarchy->unified && write_v1_limits(hierarchy, id, limits) < 0)
			return fault_errno(fault, "set cgroup limits");
		if (hierarchy->unified && delegate(hierarchy, id, owner) < 0)
			return fault_errno(fault, "delegate cgroup");
	}
	return 0;
}

static int open_below(const struct hierarchy *hierarchy, const char *id, const char *rest, int flags)
{
	struct path path;
	return openat(hierarchy->fd, below(&path, id, rest), flags | O_CLOEXEC);
}

int cgroup_open_handles(const struct cgroup_tree *tree, const char *id, struct cgroup_handles *handles, struct fault *fault)
{
	*handles = (struct cgroup_handles){.birth = -1, .agent_procs = -1, .payload = -1, .oom = -1};
	const struct hierarchy *unified = unified_of(tree);
	if (unified) {
		handles->birth = open_below(unified, id, ".", O_RDONLY | O_DIRECTORY);
		handles->payload = open_below(unified, id, "payload", O_RDONLY | O_DIRECTORY);
		if (tree->layout == CGROUP_V2)
			handles->agent_procs = open_below(unified, id, "agent/cgroup.procs", O_WRONLY);
		if (handles->birth < 0 || handles->payload < 0 || (tree->layout == CGROUP_V2 && handles->agent_procs < 0))
			return fault_errno(fault, "open cgroup");
	}
	/* under v2 it appears when the controllers are turned on, after Aether's start; there each command is counted alone */
	if (tree->layout != CGROUP_V2)
		handles->oom = open_below(with_controller(tree, CONTROL_MEMORY), id, "payload/memory.oom_control", O_RDONLY);
	for (int i = 0; i < tree->count; i++) {
		if (tree->list[i].unified)
			continue;
		int entry = open_below(&tree->list[i], id, "tasks", O_WRONLY), gate = open_below(&tree->list[i], id, "payload/tasks", O_WRONLY);
		handles->entries[handles->gate_count] = entry;
		handles->gates[handles->gate_count++] = gate;
		if (entry < 0 || gate < 0)
			return fault_errno(fault, "open cgroup tasks");
	}
	return 0;
}

void cgroup_close_handles(struct cgroup_handles *handles)
{
	close_fd(&handles->birth);
	close_fd(&handles->agent_procs);
	close_fd(&handles->payload);
	close_fd(&handles->oom);
	while (handles->gate_count > 0) {
		close_fd(&handles->entries[--handles->gate_count]);
		close_fd(&handles->gates[handles->gate_count]);
	}
}

int cgroup_seal(const struct cgroup_tree *tree, const char *id, const struct cgroup_limits *limits, struct fault *fault)
{
	if (tree->layout != CGROUP_V2)
		return 0;
	const struct hierarchy *unified = &tree->list[0];
	struct path path;
	char quota[48];
	snprintf(quota, sizeof quota, "%llu %d", (unsigned long long)limits->cpu_millis * CPU_PERIOD_USEC / 1000, CPU_PERIOD_USEC);
	if (write_control(unified->fd, below(&path, id, "cgroup.subtree_control"), "+memory +cpu +pids") < 0)
		return fault_errno(fault, "turn cgroup controllers on");
	if (write_control_number(unified->fd, below(&path, id, "payload/memory.max"), limits->memory_mib << 20) < 0 ||
	    write_control(unified->fd, below(&path, id, "payload/cpu.max"), quota) < 0 ||
	    write_control_number(unified->fd, below(&path, id, "payload/pids.max"), limits->pids) < 0)
		return fault_errno(fault, "set cgroup limits");
	/* a running sandbox does not swap; a pause raises this. A kernel without swap has no such file. */
	if (write_control(unified->fd, below(&path, id, "payload/memory.swap.max"), "0") < 0 && errno != ENOENT)
		return fault_errno(fault, "set swap limit");
	return 0;
}

/* Ending ------------------------------------------------------------------------------------------------------ */

static void kill_listed(const struct hierarchy *hierarchy, const char *id, const char *file)
{
	struct path path;
	int fd = openat(hierarchy->fd, below(&path, id, file), O_RDONLY | O_CLOEXEC);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");
	if (!stream) {
		close_fd(&fd);
		return;
	}
	for (int pid; fscanf(stream, "%d", &pid) == 1;)
		if (pid > 1)
			kill(pid, SIGKILL);
	fclose(stream);
}

void cgroup_kill(const struct cgroup_tree *tree, const char *id)
{
	struct path path;
	const struct hierarchy *unified = unified_of(tree);
	if (unified && write_control(unified->fd, below(&path, id, "cgroup.kill"), "1") == 0)
		return;
	const struct hierarchy *memory = with_controller(tree, CONTROL_MEMORY);
	kill_listed(memory, id, "cgroup.procs");
	kill_listed(memory, id, "payload/cgroup.procs");
	cgroup_freeze(tree, id, false); /* frozen by v1, a process does not even die */
}

static int remove_dir(int parent, const char *name, int depth);

struct removal {
	int dir, depth;
};

static int remove_child(const char *name, void *context)
{
	const struct removal *removal = context;
	if (strchr(name, '.')) /* a control file; groups made here have no dot in their names */
		return 0;
	if (unlinkat(removal->dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	return remove_dir(removal->dir, name, removal->depth + 1);
}

static int remove_dir(int parent, const char *name, int depth)
{
	if (depth > CGROUP_DEPTH_MAX) {
		errno = EBUSY;
		return -1;
	}
	int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? 0 : -1;
	struct removal removal = {dir, depth};
	int result = each_name(dir, remove_child, &removal);
	close_fd(&dir);
	if (result != 0)
		return -1;
	return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1;
}

int cgroup_remove(const struct cgroup_tree *tree, const char *id)
{
	struct path path;
	for (int i = tree->count - 1; i >= 0; i--) {
		int root = tree->list[i].fd;
		unlinkat(root, below(&path, id, "payload"), AT_REMOVEDIR);
		if (tree->layout == CGROUP_V2)
			unlinkat(root, below(&path, id, "agent"), AT_REMOVEDIR);
		if (unlinkat(root, id, AT_REMOVEDIR) == 0 || errno == ENOENT)
			continue;
		if (remove_dir(root, id, 1) < 0)
			return -1;
	}
	return 0;
}

/* Freezing ---------------------------------------------------------------------------------------------------- */

int cgroup_freeze(const struct cgroup_tree *tree, const char *id, bool frozen)
{
	struct path path;
	const struct hierarchy *unified = unified_of(tree), *freezer = with_controller(tree, CONTROL_FREEZER);
	if (unified)
		return write_control(unified->fd, below(&path, id, "payload/cgroup.freeze"), frozen ? "1" : "0");
	if (freezer)
		return write_control(freezer->fd, below(&path, id, "payload/freezer.state"), frozen ? "FROZEN" : "THAWED");
	errno = EOPNOTSUPP;
	return -1;
}

int cgroup_is_frozen(const struct cgroup_tree *tree, const char *id)
{
	struct path path;
	char text[CONTROL_FILE_BYTES];
	const struct hierarchy *unified = unified_of(tree), *freezer = with_controller(tree, CONTROL_FREEZER);
	if (unified)
		return read_text(unified->fd, below(&path, id, "payload/cgroup.events"), text, sizeof text) < 0 ? -1 : strstr(text, "frozen 1") != NULL;
	if (freezer)
		return read_text(freezer->fd, below(&path, id, "payload/freezer.state"), text, sizeof text) < 0 ? -1 : strncmp(text, "FROZEN", 6) == 0;
	errno = EOPNOTSUPP;
	return -1;
}

/* Looking ----------------------------------------------------------------------------------------------------- */

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
	struct path path;
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

static uint64_t read_number(const struct hierarchy *hierarchy, const char *id, const char *file)
{
	struct path path;
	char text[32];
	if (!hierarchy || read_text(hierarchy->fd, below(&path, id, file), text, sizeof text) <= 0)
		return 0;
	return strtoull(text, NULL, 10);
}

/* The number after `key` at the start of a line. */
static uint64_t read_field(const struct hierarchy *hierarchy, const char *id, const char *file, const char *key)
{
	struct path path;
	char text[CONTROL_FILE_BYTES];
	size_t length = strlen(key);
	if (!hierarchy || read_text(hierarchy->fd, below(&path, id, file), text, sizeof text) <= 0)
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
	stats->memory_bytes = read_number(memory, id, v2 ? "payload/memory.current" : "payload/memory.usage_in_bytes");
	stats->oom_kills = read_field(memory, id, v2 ? "payload/memory.events" : "payload/memory.oom_control", "oom_kill");
	stats->pids = read_number(pids, id, "payload/pids.current");
	/* the v2 core counts time without its cpu controller too */
	stats->cpu_usec = unified ? read_field(unified, id, "payload/cpu.stat", "usage_usec")
				  : read_number(with_controller(tree, CONTROL_CPUACCT), id, "payload/cpuacct.usage") / 1000;
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
