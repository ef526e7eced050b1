/* Which hierarchies the host has, and the launcher's own directory in each. */
#include "cgroup.h"

#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

enum { MOUNTINFO_BYTES = 1 << 20 };

static const struct {
	const char *name;
	unsigned bit;
} CONTROLLERS[] = {
	{"memory", CONTROL_MEMORY}, {"cpu", CONTROL_CPU}, {"pids", CONTROL_PIDS}, {"cpuacct", CONTROL_CPUACCT}, {"freezer", CONTROL_FREEZER},
};

const char *cgroup_layout_name(enum cgroup_layout layout)
{
	return layout == CGROUP_V2 ? "v2" : layout == CGROUP_V1 ? "v1" : "mixed";
}

/* The controllers named in a list that is separated by any of `separators`. */
static unsigned controllers_in(const char *list, size_t length, const char *separators)
{
	unsigned found = 0;
	for (const char *at = list, *end = list + length; at < end;) {
		size_t word = strcspn(at, separators);
		if (word > (size_t)(end - at))
			word = (size_t)(end - at);
		for (size_t i = 0; i < sizeof CONTROLLERS / sizeof *CONTROLLERS; i++)
			if (strlen(CONTROLLERS[i].name) == word && memcmp(CONTROLLERS[i].name, at, word) == 0)
				found |= CONTROLLERS[i].bit;
		at += word + 1;
	}
	return found;
}

/* One line of mountinfo: `id parent dev root mountpoint options… - type source superoptions`. */
static bool parse_mount(const char *line, struct hierarchy *out)
{
	char target[256], type[16], options[256];
	int after = 0;
	if (sscanf(line, "%*d %*d %*s %*s %255s%n", target, &after) != 1)
		return false;
	const char *dash = strstr(line + after, " - ");
	if (!dash || sscanf(dash, " - %15s %*s %255s", type, options) != 2)
		return false;
	bool unified = strcmp(type, "cgroup2") == 0;
	if (!unified && strcmp(type, "cgroup") != 0)
		return false;
	*out = (struct hierarchy){.unified = unified, .fd = -1, .controllers = unified ? 0 : controllers_in(options, strlen(options), ",")};
	snprintf(out->mount, sizeof out->mount, "%s", target);
	return true;
}

static void add(struct cgroup_tree *tree, const struct hierarchy *hierarchy)
{
	if (tree->count < HIERARCHIES_MAX)
		tree->list[tree->count++] = *hierarchy;
}

/*
 * Linux keeps, for each memory group, 16 bytes for each file system that is mounted anywhere: with thousands of sandboxes that is
 * hundreds of KiB and as many allocations per group, so there is one per sandbox and not two. Only where the v2 tree says which
 * sandboxes exist and which process is Aether, since the memory hierarchy does not any more.
 */
static void mark_flat(struct cgroup_tree *tree)
{
	for (int i = 0; i < tree->count; i++)
		tree->list[i].flat = tree->layout == CGROUP_MIXED && tree->list[i].controllers == CONTROL_MEMORY;
}

int cgroup_choose(struct cgroup_tree *tree, const char *mountinfo, const char *unified_controllers, bool without_v2)
{
	struct cgroup_tree v1 = {0};
	struct hierarchy unified = {.fd = -1}, found;
	unsigned seen = 0;
	for (const char *line = mountinfo; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		char text[1024];
		snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
		if (!parse_mount(text, &found))
			continue;
		if (found.unified && !unified.unified)
			unified = found;
		/* mounted twice, or with nothing that is wanted: the first one serves */
		if (!found.unified && (found.controllers & ~seen)) {
			seen |= found.controllers;
			add(&v1, &found);
		}
	}
	unsigned in_unified = controllers_in(unified_controllers, strlen(unified_controllers), " \n") & CONTROL_NEEDED;
	*tree = (struct cgroup_tree){0};
	if (unified.unified && in_unified == CONTROL_NEEDED && !without_v2) {
		tree->layout = CGROUP_V2;
		unified.controllers = CONTROL_NEEDED;
		add(tree, &unified);
		return 0;
	}
	if ((seen & CONTROL_NEEDED) != CONTROL_NEEDED)
		return -1;
	bool mixed = unified.unified && !without_v2;
	tree->layout = mixed ? CGROUP_MIXED : CGROUP_V1;
	if (mixed)
		add(tree, &unified);
	/* cpuacct and freezer are only needed where no v2 tree counts and freezes */
	unsigned wanted = CONTROL_NEEDED | (mixed ? 0 : CONTROL_CPUACCT | CONTROL_FREEZER);
	for (int i = 0; i < v1.count; i++)
		if (v1.list[i].controllers & CONTROL_MEMORY)
			add(tree, &v1.list[i]);
	for (int i = 0; i < v1.count; i++)
		if ((v1.list[i].controllers & wanted) && !(v1.list[i].controllers & CONTROL_MEMORY))
			add(tree, &v1.list[i]);
	mark_flat(tree);
	return 0;
}

/* A v1 host whose v2 tree is not mounted: any kernel since 4.5 gives one, and the mount namespace is our own. */
static int mount_unified(struct cgroup_tree *tree, int scratch_dir)
{
	char target[64];
	if (tree->count == HIERARCHIES_MAX || ensure_dir(scratch_dir, "cgroup2", 0755) < 0)
		return -1;
	snprintf(target, sizeof target, "/proc/self/fd/%d/cgroup2", scratch_dir);
	if (mount("cgroup2", target, "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return -1;
	struct hierarchy unified = {.unified = true, .fd = -1};
	char *real = realpath(target, NULL);
	if (!real)
		return -1;
	snprintf(unified.mount, sizeof unified.mount, "%s", real);
	free(real);
	tree->layout = CGROUP_MIXED;
	memmove(&tree->list[1], &tree->list[0], (size_t)tree->count * sizeof *tree->list);
	tree->list[0] = unified;
	tree->count++;
	mark_flat(tree);
	return 0;
}

static int read_mountinfo(struct cgroup_tree *tree, bool without_v2)
{
	char *mountinfo = malloc(MOUNTINFO_BYTES), controllers[256] = "";
	FILE *file = fopen("/proc/self/mountinfo", "re");
	int result = -1;
	if (mountinfo && file) {
		size_t length = fread(mountinfo, 1, MOUNTINFO_BYTES - 1, file);
		mountinfo[length] = '\0';
		/* where the v2 tree is mounted is only known after a first look */
		cgroup_choose(tree, mountinfo, "memory cpu pids", false);
		if (tree->layout == CGROUP_V2) {
			int mount = open(tree->list[0].mount, O_PATH | O_DIRECTORY | O_CLOEXEC);
			if (mount >= 0)
				read_text(mount, "cgroup.controllers", controllers, sizeof controllers);
			close_fd(&mount);
		}
		result = cgroup_choose(tree, mountinfo, controllers, without_v2);
	}
	if (file)
		fclose(file);
	free(mountinfo);
	return result;
}

/* Opens <mount>/<NAME>, made component by component; on v2 each one on the way hands the controllers down. */
static int open_own_dir(struct hierarchy *hierarchy, const char *name, struct fault *fault)
{
	int dir = open(hierarchy->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fault_errno(fault, "open cgroup mount");
	for (const char *at = name; *at;) {
		char component[256];
		size_t length = strcspn(at, "/");
		snprintf(component, sizeof component, "%.*s", (int)length, at);
		bool hand_down = hierarchy->unified && hierarchy->controllers;
		int next = -1;
		if (!hand_down || write_control(dir, "cgroup.subtree_control", "+memory +cpu +pids") == 0)
			next = open_dir(dir, component, 0755);
		close_fd(&dir);
		if (next < 0)
			return fault_set(fault, CODE_FAILED, "cgroup root", errno, "cannot use cgroup %s below %s: %s; choose another --cgroup or delegate it",
					 name, hierarchy->mount, strerror(errno));
		dir = next;
		at += length + (at[length] == '/');
	}
	if (hierarchy->unified && hierarchy->controllers && write_control(dir, "cgroup.subtree_control", "+memory +cpu +pids") < 0) {
		close_fd(&dir);
		return fault_errno(fault, "cgroup root controllers");
	}
	hierarchy->fd = dir;
	return 0;
}

/* Sandboxes are promised more processes than the kernel can name; all together they leave some for the host. */
static int keep_pids_for_host(const struct hierarchy *hierarchy, struct fault *fault)
{
	if (!(hierarchy->controllers & CONTROL_PIDS))
		return 0;
	char text[32] = "";
	int dir = open("/proc/sys/kernel", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ssize_t length = dir < 0 ? -1 : read_text(dir, "pid_max", text, sizeof text);
	close_fd(&dir);
	unsigned long long pid_max = length < 0 ? 0 : strtoull(text, NULL, 10);
	if (pid_max < 2 * HOST_PIDS_MIN)
		return 0; /* a host this small has other worries, and its own limit holds */
	unsigned long long reserve = pid_max / HOST_PIDS_DIVISOR < HOST_PIDS_MIN ? HOST_PIDS_MIN : pid_max / HOST_PIDS_DIVISOR;
	if (write_control_number(hierarchy->fd, "pids.max", pid_max - reserve) < 0)
		return fault_errno(fault, "limit of all sandboxes' processes");
	return 0;
}

int cgroup_open(struct cgroup_tree *tree, const char *name, bool without_v2, int scratch_dir, struct fault *fault)
{
	if (read_mountinfo(tree, without_v2) < 0)
		return fault_set(fault, CODE_FAILED, "cgroup layout", ENODEV,
				 "the cgroup controllers memory, cpu and pids are not all mounted, neither as v2 nor as v1");
	if (tree->layout == CGROUP_V1 && !without_v2)
		mount_unified(tree, scratch_dir); /* a kernel that refuses leaves the plain v1 layout, which works */
	for (int i = 0; i < tree->count; i++)
		if (open_own_dir(&tree->list[i], name, fault) < 0 || keep_pids_for_host(&tree->list[i], fault) < 0)
			return -1;
	return 0;
}

void cgroup_close(struct cgroup_tree *tree, const char *name)
{
	for (int i = 0; i < tree->count; i++) {
		close_fd(&tree->list[i].fd);
		int mount = open(tree->list[i].mount, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (mount >= 0)
			unlinkat(mount, name, AT_REMOVEDIR);
		close_fd(&mount);
	}
}
