#include "tree.h"

#include "limits.h"
#include "number.h"
#include "oom.h"
#include "walk.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TREE_PATH_BYTES = EXEC_ID_BYTES + 32 };

/* No exec id: those are hexadecimal. It stays for as long as the sandbox. */
#define FILES_GROUP "files"

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

/* Where the v2 tree has the memory controller, each command is counted by itself. Asked once: elsewhere the answer stays no. */
static void count_memory(void)
{
	static int asked;
	if (asked)
		return;
	asked = 1;
	int fd = openat(payload, "cgroup.subtree_control", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t written = write(fd, "+memory", strlen("+memory"));
	(void)written;
	close(fd);
}

int tree_make(const char *exec)
{
	char path[TREE_PATH_BYTES];
	count_memory();
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

int tree_open_files(void)
{
	if (mkdirat(payload, FILES_GROUP, 0755) < 0 && errno != EEXIST)
		return -1;
	return openat(payload, FILES_GROUP, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

/* Who of a tree is meant. */
struct meant {
	pid_t leader;               /* spared, unless 0 */
	const struct moment *since; /* NULL: of any age */
};

static int is_meant(const struct meant *meant, pid_t pid)
{
	return pid > 1 && pid != meant->leader && (!meant->since || walk_started_since(pid, meant->since));
}

/* One round of SIGKILL over cgroup.procs; ids are those of this pid namespace. How many were signalled. */
static int kill_listed(const char *exec, const struct meant *meant)
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
		killed += is_meant(meant, (pid_t)pid) && kill((pid_t)pid, SIGKILL) == 0;
		at = end + 1;
	}
	return killed;
}

static int kill_by_rounds(const char *exec, const struct meant *meant)
{
	int found = 0;
	for (int round = 0; round < KILL_ROUNDS_MAX && kill_listed(exec, meant) > 0; round++)
		found = 1;
	return found;
}

int tree_kill_since(const char *exec, pid_t leader, const struct moment *since)
{
	const struct meant meant = {leader, since};
	return tree_has_cgroups() ? kill_by_rounds(exec, &meant) : walk_kill_since(leader, since);
}

int tree_kill(const char *exec, pid_t leader)
{
	if (!tree_has_cgroups())
		return walk_kill(leader);
	const struct meant all = {0, NULL};
	char path[TREE_PATH_BYTES];
	path_of(path, exec, "/cgroup.kill");
	int fd = openat(payload, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return kill_by_rounds(exec, &all); /* before Linux 5.14 */
	int done = write(fd, "1", 1) == 1;
	close(fd);
	return done || kill_by_rounds(exec, &all);
}

int tree_oom_kills(const char *exec)
{
	char text[512];
	uint64_t kills;
	ssize_t length = tree_has_cgroups() ? read_file(exec, "/memory.events", text, sizeof text - 1) : -1;
	if (length <= 0)
		return -1;
	text[length] = '\0';
	return oom_parse(text, &kills) < 0 || kills > INT32_MAX ? -1 : (int)kills;
}
