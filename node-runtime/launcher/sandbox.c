#include "sandbox.h"

#include "files.h"
#include "frame.h"
#include "launcher.h"
#include "spec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sandbox *buckets[SANDBOX_BUCKETS];
static int total;

/* Table ------------------------------------------------------------------------------------------------------- */

static struct sandbox **bucket_of(const char *id)
{
	uint32_t hash = 2166136261u; /* FNV-1a */
	for (; *id; id++)
		hash = (hash ^ (uint8_t)*id) * 16777619u;
	return &buckets[hash % SANDBOX_BUCKETS];
}

struct sandbox *sandbox_find(const char *id)
{
	struct sandbox *sandbox = *bucket_of(id);
	while (sandbox && strcmp(sandbox->id, id) != 0)
		sandbox = sandbox->next;
	return sandbox;
}

struct sandbox *sandbox_add(const char *id)
{
	struct sandbox *sandbox = total < SANDBOXES_MAX ? calloc(1, sizeof *sandbox) : NULL;
	if (!sandbox)
		return NULL;
	snprintf(sandbox->id, sizeof sandbox->id, "%s", id);
	sandbox->process.fd = sandbox->channel.fd = -1;
	struct sandbox **bucket = bucket_of(id);
	sandbox->next = *bucket;
	*bucket = sandbox;
	total++;
	return sandbox;
}

void sandbox_drop(struct sandbox *sandbox)
{
	struct sandbox **link = bucket_of(sandbox->id);
	while (*link != sandbox)
		link = &(*link)->next;
	*link = sandbox->next;
	total--;
	free(sandbox);
}

int sandbox_each(int (*visit)(struct sandbox *sandbox, void *context), void *context)
{
	int answer = 0;
	for (int i = 0; i < SANDBOX_BUCKETS; i++)
		for (struct sandbox *sandbox = buckets[i], *next; sandbox && answer == 0; sandbox = next) {
			next = sandbox->next;
			answer = visit(sandbox, context);
		}
	return answer;
}

struct sandbox *sandbox_with_slot(uint64_t slot)
{
	for (int i = 0; i < SANDBOX_BUCKETS; i++)
		for (struct sandbox *sandbox = buckets[i]; sandbox; sandbox = sandbox->next)
			if (sandbox->has_slot && sandbox->slot == slot)
				return sandbox;
	return NULL;
}

bool waiters_add(struct waiters *waiters, const struct ticket *ticket)
{
	if (waiters->count == WAITERS_MAX)
		return false;
	waiters->list[waiters->count++] = *ticket;
	return true;
}

/* Records ----------------------------------------------------------------------------------------------------- */

static void hold_layers(struct sandbox *sandbox, const struct launch_spec *spec)
{
	sandbox->has_slot = true;
	sandbox->slot = spec->slot;
	sandbox->layer_count = 0;
	for (int i = 0; i < spec->layer_count; i++) {
		struct image *image = images_hold(spec->layers[i]);
		if (image)
			sandbox->layers[sandbox->layer_count++] = image;
	}
}

static void release_layers(struct sandbox *sandbox)
{
	while (sandbox->layer_count > 0)
		images_release(sandbox->layers[--sandbox->layer_count]);
	sandbox->has_slot = false;
}

int sandbox_record(struct sandbox *sandbox, const void *body, size_t length, struct fault *fault)
{
	struct launch_spec spec;
	if (spec_parse(&spec, body, length, fault) < 0)
		return -1;
	if (replace_file(launcher.records_fd, sandbox->id, body, length) < 0)
		return fault_errno(fault, "write record");
	release_layers(sandbox);
	hold_layers(sandbox, &spec);
	return sandbox->layer_count == spec.layer_count ? 0 : fault_set(fault, CODE_FULL, "count layers", ENOMEM, "no memory for the layers of %s", sandbox->id);
}

char *sandbox_read_record(const char *id, size_t *length)
{
	struct stat status;
	int fd = openat(launcher.records_fd, id, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = openat(launcher.tombs_fd, id, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	char *bytes = NULL;
	if (fstat(fd, &status) == 0 && status.st_size <= FRAME_BODY_MAX && (bytes = malloc((size_t)status.st_size + 1))) {
		ssize_t got = read(fd, bytes, (size_t)status.st_size);
		*length = got < 0 ? 0 : (size_t)got;
	}
	close_fd(&fd);
	return bytes;
}

void sandbox_forget_record(struct sandbox *sandbox)
{
	unlinkat(launcher.records_fd, sandbox->id, 0);
	release_layers(sandbox);
}

/* Processes --------------------------------------------------------------------------------------------------- */

uint64_t process_start_time(pid_t pid)
{
	char path[40], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (read_text(AT_FDCWD, path, text, sizeof text) <= 0)
		return 0;
	const char *at = strrchr(text, ')'); /* a command's name may hold anything, also this */
	unsigned long long start = 0;
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &start) != 1)
		return 0;
	return start;
}

void sandbox_on_exit(struct watch *watch, uint32_t events)
{
	(void)events;
	struct sandbox *sandbox = OWNER_OF(watch, struct sandbox, process);
	waitid(P_PIDFD, (id_t)watch->fd, NULL, WEXITED | WNOHANG); /* not our child after a restart: then init reaps it */
	sandbox_unwatch(sandbox);
	sandbox->phase = SANDBOX_DEAD;
}

int sandbox_watch(struct sandbox *sandbox, pid_t pid, int pidfd)
{
	if (loop_watch(&sandbox->process, pidfd, sandbox_on_exit) < 0)
		return -1;
	sandbox->pid = pid;
	sandbox->start_time = process_start_time(pid);
	return 0;
}

void sandbox_unwatch(struct sandbox *sandbox)
{
	loop_close(&sandbox->process);
	sandbox->pid = 0;
}

/* Adoption ---------------------------------------------------------------------------------------------------- */

/* Between clone and exec it still has the launcher's name. */
static bool is_half_made(pid_t pid)
{
	char path[40], name[32], own[32];
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	if (read_text(AT_FDCWD, path, name, sizeof name) <= 0 || read_text(AT_FDCWD, "/proc/self/comm", own, sizeof own) <= 0)
		return false;
	return strcmp(name, own) == 0;
}

/* The child of a launcher that died: it was to go along with it, and on a busy machine that takes a moment. True when it is gone. */
static bool end_half_made(int pidfd)
{
	struct pollfd gone = {.fd = pidfd, .events = POLLIN};
	pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
	return poll(&gone, 1, HALF_MADE_END_MS) > 0;
}

static int adopt(struct sandbox *sandbox, struct fault *fault)
{
	pid_t pid = cgroup_first_process(&launcher.cgroups, sandbox->id);
	if (pid == 0)
		return 0;
	int pidfd = pidfd_open(pid, 0);
	if (pidfd < 0)
		return errno == ESRCH ? 0 : fault_errno(fault, "watch live sandbox");
	if (is_half_made(pid) && end_half_made(pidfd)) {
		close_fd(&pidfd);
		return 0;
	}
	if (sandbox_watch(sandbox, pid, pidfd) < 0) {
		close_fd(&pidfd);
		return fault_errno(fault, "watch live sandbox");
	}
	sandbox->phase = SANDBOX_LIVE;
	return 0;
}

static int adopt_record(const char *name, void *context)
{
	struct fault *fault = context;
	size_t length = 0;
	if (!is_sandbox_id(name)) {
		unlinkat(launcher.records_fd, name, 0); /* half-written by a launcher that died */
		return 0;
	}
	struct sandbox *sandbox = sandbox_add(name);
	if (!sandbox)
		return fault_set(fault, CODE_FULL, "adopt", ENOMEM, "more than %d sandboxes are recorded", SANDBOXES_MAX);
	char *record = sandbox_read_record(name, &length);
	struct launch_spec spec;
	struct fault unreadable;
	if (record && spec_parse(&spec, record, length, &unreadable) == 0)
		hold_layers(sandbox, &spec);
	free(record);
	return adopt(sandbox, fault);
}

static int adopt_group(const char *id, void *context)
{
	if (sandbox_find(id) || cgroup_remove(&launcher.cgroups, id) == 0)
		return 0;
	struct sandbox *sandbox = sandbox_add(id);
	return sandbox ? adopt(sandbox, context) : 0;
}

int sandbox_adopt_all(struct fault *fault)
{
	if (each_name(launcher.records_fd, adopt_record, fault) != 0)
		return -1;
	return cgroup_each(&launcher.cgroups, adopt_group, fault) != 0 ? -1 : 0;
}
