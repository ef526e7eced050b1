/* A sandbox's directories, limits and descriptors. */
#include "cgroup_paths.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
	/*
	 * A sandbox that can spends its share at the start of a period, on all processors at once, and its neighbours wait for so long. A
	 * quarter of the kernel's default brings their slowest commands beside a fork bomb down to what they are without one.
	 */
	CPU_PERIOD_USEC = 25000,
	CPU_QUOTA_USEC_MIN = 1000, /* the kernel's */
	/* v1's name for a weight of 100 */
	CPU_SHARES_USUAL = 1024,
	CPU_SHARES_MIN = 2,
};

struct cpu_share {
	unsigned long long quota_usec, period_usec;
};

/* A longer period for what would be too small a share of the usual one. */
static struct cpu_share cpu_share_of(uint64_t cpu_millis)
{
	unsigned long long period = (CPU_QUOTA_USEC_MIN * 1000 + cpu_millis - 1) / cpu_millis;
	if (period < CPU_PERIOD_USEC)
		period = CPU_PERIOD_USEC;
	return (struct cpu_share){cpu_millis * period / 1000, period};
}

/* Between sandboxes, so on their own directories: those of the payload compete with Aether alone. */
static unsigned long long shares_of(uint64_t weight)
{
	unsigned long long shares = weight * CPU_SHARES_USUAL / CPU_WEIGHT_USUAL;
	return shares < CPU_SHARES_MIN ? CPU_SHARES_MIN : shares;
}

static int write_v1_limits(const struct hierarchy *hierarchy, const char *id, const struct cgroup_limits *limits)
{
	struct cgroup_path path;
	if (hierarchy->controllers & CONTROL_MEMORY) {
		unsigned long long bytes = limits->memory_mib << 20;
		if (write_control_number(hierarchy->fd, payload(&path, hierarchy, id, "memory.limit_in_bytes"), bytes) < 0)
			return -1;
		/* memory and swap together; a kernel without swap accounting has no such file */
		unsigned long long with_swap = (limits->memory_mib + limits->swap_mib) << 20;
		if (write_control_number(hierarchy->fd, payload(&path, hierarchy, id, "memory.memsw.limit_in_bytes"), with_swap) < 0 && errno != ENOENT)
			return -1;
		if (cgroup_allow_swap_in(hierarchy, id, false, limits->swap_mib) < 0)
			return -1;
		unsigned long long sockets = limits->memory_mib / SOCKET_MEMORY_DIVISOR;
		if (sockets < SOCKET_MEMORY_MIB_MIN)
			sockets = SOCKET_MEMORY_MIB_MIN;
		if (write_control_number(hierarchy->fd, payload(&path, hierarchy, id, "memory.kmem.tcp.limit_in_bytes"), sockets << 20) < 0 && errno != ENOENT)
			return -1;
	}
	if (hierarchy->controllers & CONTROL_CPU) {
		if (write_control_number(hierarchy->fd, below(&path, id, "cpu.shares"), shares_of(limits->cpu_weight)) < 0)
			return -1;
		struct cpu_share share = cpu_share_of(limits->cpu_millis);
		if (write_control_number(hierarchy->fd, payload(&path, hierarchy, id, "cpu.cfs_period_us"), share.period_usec) < 0)
			return -1;
		if (write_control_number(hierarchy->fd, payload(&path, hierarchy, id, "cpu.cfs_quota_us"), share.quota_usec) < 0)
			return -1;
	}
	if (hierarchy->controllers & CONTROL_PIDS)
		return write_control_number(hierarchy->fd, payload(&path, hierarchy, id, "pids.max"), limits->pids);
	return 0;
}

/* The common ancestor of Aether's group and a command's must be the sandbox's too, or the kernel refuses the move. */
static int delegate(const struct hierarchy *unified, const char *id, uid_t owner)
{
	static const char *const FILES[] = {"cgroup.procs", "payload", "payload/cgroup.procs", "payload/cgroup.threads", "payload/cgroup.subtree_control"};
	struct cgroup_path path;
	for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
		if (fchownat(unified->fd, below(&path, id, FILES[i]), owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
			return -1;
	return 0;
}

int cgroup_make(const struct cgroup_tree *tree, const char *id, uid_t owner, const struct cgroup_limits *limits, struct fault *fault)
{
	struct cgroup_path path;
	for (int i = 0; i < tree->count; i++) {
		const struct hierarchy *hierarchy = &tree->list[i];
		if (ensure_dir(hierarchy->fd, id, 0755) < 0 || (!hierarchy->flat && ensure_dir(hierarchy->fd, below(&path, id, "payload"), 0755) < 0))
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
	struct cgroup_path path;
	return openat(hierarchy->fd, below(&path, id, rest), flags | O_CLOEXEC);
}

static int open_payload(const struct hierarchy *hierarchy, const char *id, const char *rest, int flags)
{
	struct cgroup_path path;
	return openat(hierarchy->fd, payload(&path, hierarchy, id, rest), flags | O_CLOEXEC);
}

static int open_gate(const struct hierarchy *hierarchy, const char *id, struct cgroup_handles *handles)
{
	int i = handles->gate_count++;
	handles->entries[i] = open_below(hierarchy, id, "tasks", O_WRONLY);
	handles->gates[i] = open_payload(hierarchy, id, "tasks", O_WRONLY);
	handles->exits[i] = hierarchy->flat ? openat(hierarchy->fd, "tasks", O_WRONLY | O_CLOEXEC) : -1;
	return handles->entries[i] < 0 || handles->gates[i] < 0 || (hierarchy->flat && handles->exits[i] < 0) ? -1 : 0;
}

int cgroup_open_handles(const struct cgroup_tree *tree, const char *id, struct cgroup_handles *handles, struct fault *fault)
{
	*handles = (struct cgroup_handles){.birth = -1, .agent_procs = -1, .payload = -1, .oom = -1, .pids = -1};
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
	if (tree->layout != CGROUP_V2) {
		handles->oom = open_payload(with_controller(tree, CONTROL_MEMORY), id, "memory.oom_control", O_RDONLY);
		handles->pids = open_below(with_controller(tree, CONTROL_PIDS), id, "payload", O_PATH | O_DIRECTORY);
	}
	for (int i = 0; i < tree->count; i++)
		if (!tree->list[i].unified && open_gate(&tree->list[i], id, handles) < 0)
			return fault_errno(fault, "open cgroup tasks");
	return 0;
}

void cgroup_close_handles(struct cgroup_handles *handles)
{
	close_fd(&handles->birth);
	close_fd(&handles->agent_procs);
	close_fd(&handles->payload);
	close_fd(&handles->oom);
	close_fd(&handles->pids);
	while (handles->gate_count > 0) {
		close_fd(&handles->entries[--handles->gate_count]);
		close_fd(&handles->gates[handles->gate_count]);
		close_fd(&handles->exits[handles->gate_count]);
	}
}

int cgroup_seal(const struct cgroup_tree *tree, const char *id, const struct cgroup_limits *limits, struct fault *fault)
{
	if (tree->layout != CGROUP_V2)
		return 0;
	const struct hierarchy *unified = &tree->list[0];
	struct cgroup_path path;
	char quota[48];
	struct cpu_share share = cpu_share_of(limits->cpu_millis);
	snprintf(quota, sizeof quota, "%llu %llu", share.quota_usec, share.period_usec);
	if (write_control(unified->fd, below(&path, id, "cgroup.subtree_control"), "+memory +cpu +pids") < 0)
		return fault_errno(fault, "turn cgroup controllers on");
	if (write_control_number(unified->fd, payload(&path, unified, id, "memory.max"), limits->memory_mib << 20) < 0 ||
	    write_control(unified->fd, payload(&path, unified, id, "cpu.max"), quota) < 0 ||
	    write_control_number(unified->fd, payload(&path, unified, id, "pids.max"), limits->pids) < 0 ||
	    write_control_number(unified->fd, below(&path, id, "cpu.weight"), limits->cpu_weight) < 0)
		return fault_errno(fault, "set cgroup limits");
	if (cgroup_allow_swap(tree, id, false, limits->swap_mib) < 0)
		return fault_errno(fault, "set swap limit");
	return 0;
}
