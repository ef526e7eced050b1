/* Memory of a payload: what it has, whether it may be swapped, taking it away. */
#include "cgroup_paths.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* v1: how inclined the kernel is to swap. 0 is: not unless nothing else is left. */
	SWAPPINESS_NEVER = 0,
	SWAPPINESS_USUAL = 60,
	SWAPPINESS_FIRST = 100,
	/* v2 takes what it finds in one go and says EAGAIN when it is less; asking again finds a little more. */
	RECLAIM_ROUNDS = 4,
};

static uint64_t field_of(const char *text, const char *key)
{
	size_t length = strlen(key);
	for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (strncmp(line, key, length) == 0 && line[length] == ' ')
			return strtoull(line + length, NULL, 10);
	return 0;
}

int cgroup_read_memory(const struct cgroup_tree *tree, const char *id, struct cgroup_memory *memory)
{
	struct cgroup_path path;
	char text[CONTROL_FILE_BYTES], number[32];
	const struct hierarchy *hierarchy = with_controller(tree, CONTROL_MEMORY);
	bool v2 = tree->layout == CGROUP_V2;
	if (read_text(hierarchy->fd, payload(&path, hierarchy, id, "memory.stat"), text, sizeof text) <= 0)
		return -1;
	memory->reclaimable_bytes = field_of(text, v2 ? "anon" : "rss") + field_of(text, "shmem");
	memory->file_bytes = field_of(text, v2 ? "file" : "cache") - field_of(text, "shmem");
	memory->swapped_bytes = field_of(text, "swap");
	if (v2)
		memory->swapped_bytes =
			read_text(hierarchy->fd, payload(&path, hierarchy, id, "memory.swap.current"), number, sizeof number) > 0 ? strtoull(number, NULL, 10) : 0;
	const char *usage = v2 ? "memory.current" : "memory.usage_in_bytes";
	if (read_text(hierarchy->fd, payload(&path, hierarchy, id, usage), number, sizeof number) <= 0)
		return -1;
	memory->used_bytes = strtoull(number, NULL, 10);
	return 0;
}

/* A kernel without swap has no such files. */
int cgroup_allow_swap_in(const struct hierarchy *memory, const char *id, bool paused, uint64_t swap_mib)
{
	struct cgroup_path path;
	int result;
	if (memory->unified)
		result = paused ? write_control(memory->fd, payload(&path, memory, id, "memory.swap.max"), "max")
				: write_control_number(memory->fd, payload(&path, memory, id, "memory.swap.max"), swap_mib << 20);
	else
		result = write_control_number(memory->fd, payload(&path, memory, id, "memory.swappiness"),
					      paused ? SWAPPINESS_FIRST : swap_mib > 0 ? SWAPPINESS_USUAL : SWAPPINESS_NEVER);
	return result < 0 && errno != ENOENT ? -1 : 0;
}

int cgroup_allow_swap(const struct cgroup_tree *tree, const char *id, bool paused, uint64_t swap_mib)
{
	return cgroup_allow_swap_in(with_controller(tree, CONTROL_MEMORY), id, paused, swap_mib);
}

void cgroup_reclaim(const struct cgroup_tree *tree, const char *id, uint64_t bytes)
{
	struct cgroup_path path;
	const struct hierarchy *memory = with_controller(tree, CONTROL_MEMORY);
	if (!memory->unified) {
		write_control(memory->fd, payload(&path, memory, id, "memory.force_empty"), "0");
		return;
	}
	for (int round = 0; round < RECLAIM_ROUNDS; round++)
		if (write_control_number(memory->fd, payload(&path, memory, id, "memory.reclaim"), bytes) == 0 || errno != EAGAIN)
			return;
}

struct visit {
	int dir;
	int (*visit)(pid_t pid, void *context);
	void *context;
};

static int visit_listed(const struct visit *visit, int dir)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC), result = 0;
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");
	if (!stream) {
		close_fd(&fd);
		return 0;
	}
	for (int pid; result == 0 && fscanf(stream, "%d", &pid) == 1;)
		if (pid > 1)
			result = visit->visit((pid_t)pid, visit->context);
	fclose(stream);
	return result;
}

/* Groups of commands lie right below the payload; files of control groups have a dot in their names. */
static int visit_child(const char *name, void *context)
{
	const struct visit *visit = context;
	if (strchr(name, '.'))
		return 0;
	int dir = openat(visit->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = dir < 0 ? 0 : visit_listed(visit, dir);
	close_fd(&dir);
	return result;
}

int cgroup_each_process(const struct cgroup_tree *tree, const char *id, int (*visit)(pid_t pid, void *context), void *context)
{
	struct cgroup_path path;
	const struct hierarchy *memory = with_controller(tree, CONTROL_MEMORY);
	struct visit inner = {openat(memory->fd, payload(&path, memory, id, "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC), visit, context};
	if (inner.dir < 0)
		return 0;
	int result = visit_listed(&inner, inner.dir);
	if (result == 0)
		result = each_name(inner.dir, visit_child, &inner);
	close_fd(&inner.dir);
	return result;
}
