#include "walk.h"

#include "limits.h"
#include "number.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* PID_MAX_LIMIT of Linux. */
enum { PID_LIMIT = 4 * 1024 * 1024 + 1 };

enum { TICKS_PER_SECOND = 100, FIELDS_UP_TO_START = 15 }; /* USER_HZ is part of the interface; fields 7 to 21 of proc(5) */

struct process {
	pid_t pid;
	struct process_stat stat;
	int doomed;
};

/* Layout of getdents64(2). */
struct directory_entry {
	uint64_t inode;
	int64_t offset;
	uint16_t length;
	uint8_t type;
	char name[];
};

int walk_parse_stat(const char *text, struct process_stat *out)
{
	uint64_t numbers[3]; /* parent, process group, session */
	const char *at = strrchr(text, ')');
	if (!at || at[1] != ' ' || at[2] == '\0')
		return -1;
	at += 3; /* past the state letter */
	for (int i = 0; i < 3; i++) {
		at = *at == ' ' ? number_read(at + 1, PID_LIMIT, &numbers[i]) : NULL;
		if (!at)
			return -1;
	}
	out->parent = (pid_t)numbers[0];
	out->session = (pid_t)numbers[2];
	for (int i = 0; i <= FIELDS_UP_TO_START; i++)
		if (!(at = strchr(at + (i > 0), ' ')))
			return -1;
	return number_read(at + 1, UINT64_MAX, &out->started_ticks) ? 0 : -1;
}

static int read_process(int proc, const char *name, struct process *process)
{
	char path[32], text[512];
	uint64_t pid;
	const char *end = number_read(name, PID_LIMIT, &pid);
	if (!end || *end != '\0')
		return -1;
	size_t length = strlen(name);
	memcpy(path, name, length);
	strcpy(path + length, "/stat");
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t got = read(fd, text, sizeof text - 1);
	close(fd);
	if (got <= 0)
		return -1;
	text[got] = '\0';
	*process = (struct process){.pid = (pid_t)pid};
	return walk_parse_stat(text, &process->stat);
}

static size_t list_processes(struct process *list)
{
	_Alignas(8) char entries[4096];
	size_t count = 0;
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return 0;
	long got;
	while ((got = syscall(SYS_getdents64, proc, entries, sizeof entries)) > 0)
		for (long at = 0; at < got && count < WALK_PROCESSES_MAX;) {
			struct directory_entry *entry = (struct directory_entry *)(entries + at);
			count += read_process(proc, entry->name, &list[count]) == 0;
			at += entry->length;
		}
	close(proc);
	return count;
}

static int belongs(const struct process *process, const struct process *list, size_t count, pid_t leader)
{
	if (process->pid == leader || process->stat.session == leader)
		return 1;
	for (size_t i = 0; i < count; i++)
		if (list[i].doomed && (process->stat.parent == list[i].pid || process->stat.session == list[i].pid))
			return 1;
	return 0;
}

/* Marks until a pass marks nothing new. */
static void doom(struct process *list, size_t count, pid_t leader)
{
	for (int changed = 1; changed;) {
		changed = 0;
		for (size_t i = 0; i < count; i++)
			if (!list[i].doomed && list[i].pid > 1 && belongs(&list[i], list, count, leader))
				changed = list[i].doomed = 1;
	}
}

int walk_kill(pid_t leader)
{
	struct process *list = malloc(WALK_PROCESSES_MAX * sizeof *list);
	int found = 0, before = -1;
	if (leader <= 1 || !list) {
		free(list);
		return 0;
	}
	/* stopped first, so that what is found cannot fork away between two rounds */
	for (int round = 0; round < KILL_ROUNDS_MAX && found != before; round++) {
		size_t count = list_processes(list);
		doom(list, count, leader);
		before = found;
		found = 0;
		for (size_t i = 0; i < count; i++)
			found += list[i].doomed && kill(list[i].pid, SIGSTOP) == 0;
	}
	size_t count = list_processes(list);
	doom(list, count, leader);
	for (size_t i = 0; i < count; i++)
		if (list[i].doomed)
			kill(list[i].pid, SIGKILL);
	kill(-leader, SIGKILL);
	free(list);
	return found > 0;
}

static uint64_t ticks_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * TICKS_PER_SECOND + (uint64_t)now.tv_nsec / (1000000000 / TICKS_PER_SECOND);
}

/* The last field of /proc/loadavg is the number given out last in the reader's pid namespace. */
struct moment walk_moment(void)
{
	struct moment moment = {.ticks = ticks_now()};
	char text[128];
	uint64_t pid;
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return moment;
	text[length] = '\0';
	const char *last = strrchr(text, ' ');
	if (last && number_read(last + 1, PID_LIMIT, &pid))
		moment.last_pid = (pid_t)pid;
	return moment;
}

static int is_since(const struct process *process, const struct moment *since)
{
	if (process->stat.started_ticks != since->ticks)
		return process->stat.started_ticks > since->ticks;
	return process->pid > since->last_pid;
}

int walk_started_since(pid_t pid, const struct moment *since)
{
	char name[21];
	struct process process;
	number_write(name, (uint64_t)pid);
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int found = proc >= 0 && read_process(proc, name, &process) == 0;
	if (proc >= 0)
		close(proc);
	return found && is_since(&process, since);
}

int walk_kill_since(pid_t leader, const struct moment *since)
{
	struct process *list = malloc(WALK_PROCESSES_MAX * sizeof *list);
	int found = 0;
	if (leader <= 1 || !list) {
		free(list);
		return 0;
	}
	size_t count = list_processes(list);
	doom(list, count, leader);
	for (size_t i = 0; i < count; i++)
		if (list[i].doomed && list[i].pid != leader && is_since(&list[i], since))
			found |= kill(list[i].pid, SIGKILL) == 0;
	free(list);
	return found;
}
