#include "tree.h"

#include "limits.h"
#include "number.h"
#include "walk.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TREE_PATH_BYTES = EXEC_ID_BYTES + 32 };

static int payload = -1;

void tree_init(int payload_fd)
{
	payload = payload_fd;
}

int tree_has_cgroups(void)
{
	return payload >= 0;
}

/* The exec id without `ex-`, and optionally a file below. */
static void path_of(char path[TREE_PATH_BYTES], const char *exec, const char *file)
{
	const size_t length = EXEC_ID_LENGTH - 3;
	memcpy(path, exec + 3, length);
	strcpy(path + length, file);
}

int tree_make(const char *exec)
{
	char path[TREE_PATH_BYTES];
	path_of(path, exec, "");
	if (mkdirat(payload, path, 0755) < 0)
		return -1;
	int fd = openat(payload, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	int problem = errno;
	unlinkat(payload, path, AT_REMOVEDIR);
	errno = problem;
	return -1;
}

/* Reads a small file of the cgroup, as far as there is room. Its length, or -1. */
static ssize_t read_file(const char *exec, const char *file, char *text, size_t room)
{
	char path[TREE_PATH_BYTES];
	path_of(path, exec, file);
	int fd = openat(payload, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t got = read(fd, text, room);
	close(fd);
	return got;
}

enum tree_state tree_remove(const char *exec)
{
	char path[TREE_PATH_BYTES], first;
	path_of(path, exec, "");
	if (unlinkat(payload, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return TREE_GONE;
	return read_file(exec, "/cgroup.procs", &first, sizeof first) == 0 ? TREE_LEAVING : TREE_POPULATED;
}

/* One round of SIGKILL over cgroup.procs; ids are those of this pid namespace. How many were signalled. */
static int kill_listed(const char *exec)
{
	char text[4096];
	int killed = 0;
	ssize_t length = read_file(exec, "/cgroup.procs", text, sizeof text - 1);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	for (const char *at = text; *at;) {
		uint64_t pid;
		const char *end = number_read(at, INT32_MAX, &pid);
		if (!end || *end != '\n')
			break; /* cut at the end of the buffer: the next round has it */
		killed += pid > 1 && kill((pid_t)pid, SIGKILL) == 0;
		at = end + 1;
	}
	return killed;
}

static int kill_by_rounds(const char *exec)
{
	int found = 0;
	for (int round = 0; round < KILL_ROUNDS_MAX && kill_listed(exec) > 0; round++)
		found = 1;
	return found;
}

int tree_kill(const char *exec, pid_t leader)
{
	if (!tree_has_cgroups())
		return walk_kill(leader);
	char path[TREE_PATH_BYTES];
	path_of(path, exec, "/cgroup.kill");
	int fd = openat(payload, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return kill_by_rounds(exec); /* before Linux 5.14 */
	int done = write(fd, "1", 1) == 1;
	close(fd);
	return done || kill_by_rounds(exec);
}

int tree_ran_out_of_memory(const char *exec)
{
	char text[512];
	ssize_t length = tree_has_cgroups() ? read_file(exec, "/memory.events", text, sizeof text - 1) : -1;
	if (length <= 0)
		return 0; /* without the v2 memory controller only the whole sandbox is counted; the Edge compares that */
	text[length] = '\0';
	const char *line = strstr(text, "oom_kill ");
	return line && line[strlen("oom_kill ")] != '0'; /* a count, written without leading zeros */
}
