/* Kill, freeze, remove. */
#include "cgroup_paths.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void kill_listed(const struct hierarchy *hierarchy, const char *id, const char *file)
{
	struct cgroup_path path;
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
	struct cgroup_path path;
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
	struct cgroup_path path;
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

int cgroup_freeze(const struct cgroup_tree *tree, const char *id, bool frozen)
{
	struct cgroup_path path;
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
	struct cgroup_path path;
	char text[CONTROL_FILE_BYTES];
	const struct hierarchy *unified = unified_of(tree), *freezer = with_controller(tree, CONTROL_FREEZER);
	if (unified)
		return read_text(unified->fd, below(&path, id, "payload/cgroup.events"), text, sizeof text) < 0 ? -1 : strstr(text, "frozen 1") != NULL;
	if (freezer)
		return read_text(freezer->fd, below(&path, id, "payload/freezer.state"), text, sizeof text) < 0 ? -1 : strncmp(text, "FROZEN", 6) == 0;
	errno = EOPNOTSUPP;
	return -1;
}
