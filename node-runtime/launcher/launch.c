#include "launch.h"

#include "child.h"
#include "devices.h"
#include "files.h"
#include "launcher.h"
#include "overlay.h"
#include "spec.h"
#include "storage.h"
#include "teardown.h"
#include "tombs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	REPORT_AETHER_ERROR_BYTES = 5, /* 'E' and an i32 */
};

/* Descriptors that live only until the child has them. */
struct assembly {
	struct storage storage;
	struct cgroup_handles cgroup;
	int listener, child_end, launcher_end;
};

static void close_assembly(struct assembly *assembly)
{
	storage_close(&assembly->storage);
	cgroup_close_handles(&assembly->cgroup);
	close_fd(&assembly->listener);
	close_fd(&assembly->child_end);
	close_fd(&assembly->launcher_end);
}

static void answer_live(const struct ticket *ticket, const struct sandbox *sandbox)
{
	struct body body = {0};
	body_add(&body, "pid", "%d", (int)sandbox->pid);
	body_add(&body, "startTime", "%llu", (unsigned long long)sandbox->start_time);
	answer_ok(ticket, &body);
}

/* Assembling -------------------------------------------------------------------------------------------------- */

static int base_root_mode(const struct sandbox *sandbox, mode_t *mode, struct fault *fault)
{
	struct stat status;
	if (fstatat(launcher.layers_fd, image_name(sandbox->layers[0]), &status, AT_SYMLINK_NOFOLLOW) < 0)
		return fault_errno(fault, "look at base layer");
	*mode = status.st_mode & 07777;
	return 0;
}

/* Bound before the clone and on a path of the host: inside there is nothing to find. */
static int listen_for_aether(const char *path, struct fault *fault)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, path, strlen(path) + 1); /* spec_parse has checked the length */
	unlink(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0177);
	int bound = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof address);
	umask(mask);
	if (bound < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
		fault_errno(fault, "bind Aether's socket");
		close_fd(&fd);
	}
	return fd;
}

static int assemble(struct assembly *assembly, const struct sandbox *sandbox, const struct launch_spec *spec, struct fault *fault)
{
	mode_t root_mode = 0755;
	int pair[2];
	if (base_root_mode(sandbox, &root_mode, fault) < 0 || storage_open(&assembly->storage, spec, root_mode, fault) < 0)
		return -1;
	if (cgroup_make(&launcher.cgroups, spec->id, spec_owner(spec->slot), &spec->limits, fault) < 0 ||
	    cgroup_open_handles(&launcher.cgroups, spec->id, &assembly->cgroup, fault) < 0)
		return -1;
	if ((assembly->listener = listen_for_aether(spec->socket, fault)) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return fault_errno(fault, "make channel");
	assembly->launcher_end = pair[0];
	assembly->child_end = pair[1];
	return 0;
}

/* Cloning ----------------------------------------------------------------------------------------------------- */

static pid_t clone_child(const struct assembly *assembly, const struct launch_spec *spec, int *pidfd, struct fault *fault)
{
	struct child_setup setup = {
		.hostname = spec->hostname, .life_seconds = spec->life_seconds, .memory_mib = spec->limits.memory_mib,
		.channel = assembly->child_end, .launcher_end = assembly->launcher_end, .listener = assembly->listener,
		.exec_dir = assembly->storage.exec_dir, .aether = launcher.aether_fd,
		.cgroup = &assembly->cgroup,
	};
	/* the cgroup namespace comes later: its root must be the group that the child is in by then */
	struct clone_args arguments = {
		.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWUSER | CLONE_PIDFD,
		.exit_signal = SIGCHLD,
		.pidfd = (uintptr_t)pidfd,
	};
	if (assembly->cgroup.birth >= 0) {
		arguments.flags |= CLONE_INTO_CGROUP;
		arguments.cgroup = (uint64_t)assembly->cgroup.birth;
	}
	pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
	if (pid == 0)
		child_run(&setup);
	if (pid < 0) /* ENOSPC is not a full disk here but too many namespaces */
		fault_set(fault, errno == ENOSPC || errno == EAGAIN || errno == ENOMEM ? CODE_FULL : CODE_FAILED, "clone", errno,
			  "clone into namespaces: %s; see user.max_*_namespaces and pids limits", strerror(errno));
	return pid;
}

static int write_id_map(pid_t pid, const char *file, uid_t owner)
{
	char path[40], map[48];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	snprintf(map, sizeof map, "0 %u %d", owner, ID_RANGE_SIZE);
	return write_control(AT_FDCWD, path, map);
}

static int send_go(int channel, const int mounts[GO_FDS])
{
	char byte = 'G', control[CMSG_SPACE(GO_FDS * sizeof(int))] = {0};
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(GO_FDS * sizeof(int));
	memcpy(CMSG_DATA(rights), mounts, GO_FDS * sizeof(int));
	return sendmsg(channel, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* What the waiting child cannot do for itself; then the gate opens. */
static int admit_child(struct sandbox *sandbox, const struct assembly *assembly, const struct launch_spec *spec, struct fault *fault)
{
	uid_t owner = spec_owner(spec->slot);
	char path[40];
	int mounts[GO_FDS] = {-1, -1}, userns, result = -1;
	if (write_id_map(sandbox->pid, "uid_map", owner) < 0 || write_id_map(sandbox->pid, "gid_map", owner) < 0)
		return fault_errno(fault, "map ids");
	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)sandbox->pid);
	if ((userns = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return fault_errno(fault, "open user namespace");
	mounts[GO_ROOT] = overlay_make(sandbox->layers, sandbox->layer_count, assembly->storage.upper, assembly->storage.work, userns, fault);
	if (mounts[GO_ROOT] >= 0)
		mounts[GO_DEV] = devices_make(owner, fault);
	if (mounts[GO_DEV] >= 0 && (result = send_go(sandbox->channel.fd, mounts)) < 0)
		fault_errno(fault, "open the gate");
	close_fd(&mounts[GO_ROOT]);
	close_fd(&mounts[GO_DEV]);
	close_fd(&userns);
	return result;
}

/* Ready, or not ----------------------------------------------------------------------------------------------- */

static void fail_launch(struct sandbox *sandbox)
{
	loop_clear_timer(&sandbox->timer);
	teardown_failed(sandbox);
}

static int succeed_launch(struct sandbox *sandbox)
{
	size_t length;
	char *record = sandbox_read_record(sandbox->id, &length);
	struct launch_spec spec;
	if (!record)
		return fault_errno(&sandbox->fault, "read record");
	int result = spec_parse(&spec, record, length, &sandbox->fault) < 0 ? -1 : cgroup_seal(&launcher.cgroups, spec.id, &spec.limits, &sandbox->fault);
	free(record);
	if (result < 0)
		return -1;
	loop_clear_timer(&sandbox->timer);
	sandbox->phase = SANDBOX_LIVE;
	sandbox->process.ready = sandbox_on_exit;
	for (int i = 0; i < sandbox->launch.count; i++)
		answer_live(&sandbox->launch.list[i], sandbox);
	sandbox->launch.count = 0;
	return 0;
}

/* It ended without a word. */
static void explain_death(struct sandbox *sandbox)
{
	siginfo_t information = {0};
	waitid(P_PIDFD, (id_t)sandbox->process.fd, &information, WEXITED | WNOHANG | WNOWAIT);
	if (information.si_code == CLD_KILLED || information.si_code == CLD_DUMPED)
		fault_set(&sandbox->fault, CODE_DIED, "wait for Aether", 0, "the first process was killed by SIG%s before it was ready",
			  sigabbrev_np(information.si_status));
	else
		fault_set(&sandbox->fault, CODE_DIED, "wait for Aether", 0, "the first process ended with code %d before it was ready", information.si_status);
}

static void read_report(struct sandbox *sandbox, const struct child_report *report, ssize_t length)
{
	int32_t error;
	if (length == (ssize_t)sizeof *report && report->letter == 'C') {
		errno = report->error;
		fault_errno(&sandbox->fault, child_step_name(report->step));
	} else if (length == REPORT_AETHER_ERROR_BYTES && report->letter == 'E') {
		memcpy(&error, (const char *)report + 1, sizeof error);
		errno = error;
		fault_errno(&sandbox->fault, "set Aether up");
	} else
		explain_death(sandbox);
}

/* What came over the channel: ready, or why not. */
static void take_report(struct sandbox *sandbox, const struct child_report *report, ssize_t length)
{
	bool ready = length == 1 && report->letter == 'R';
	if (!ready)
		read_report(sandbox, report, length);
	loop_close(&sandbox->channel);
	if (!ready || succeed_launch(sandbox) < 0)
		fail_launch(sandbox);
}

static void on_channel(struct watch *watch, uint32_t events)
{
	(void)events;
	struct sandbox *sandbox = OWNER_OF(watch, struct sandbox, channel);
	struct child_report report;
	ssize_t length = recv(watch->fd, &report, sizeof report, MSG_DONTWAIT);
	if (length == 0) /* it is dying; how, is known when it is dead */
		loop_close(watch);
	else
		take_report(sandbox, &report, length);
}

/* What it said before it died may still be in the channel. */
static void on_early_death(struct watch *watch, uint32_t events)
{
	(void)events;
	struct sandbox *sandbox = OWNER_OF(watch, struct sandbox, process);
	struct child_report report;
	ssize_t length = sandbox->channel.fd < 0 ? 0 : recv(sandbox->channel.fd, &report, sizeof report, MSG_DONTWAIT);
	take_report(sandbox, &report, length);
}

static void on_timeout(struct timer *timer)
{
	struct sandbox *sandbox = OWNER_OF(timer, struct sandbox, timer);
	fault_set(&sandbox->fault, CODE_TIMEOUT, "wait for Aether", ETIMEDOUT, "sandbox %s was not ready after %d ms", sandbox->id, LAUNCH_TIMEOUT_MS);
	fail_launch(sandbox);
}

/* The request ------------------------------------------------------------------------------------------------- */

static int start(struct sandbox *sandbox, struct assembly *assembly, const struct launch_spec *spec, struct fault *fault)
{
	if (assemble(assembly, sandbox, spec, fault) < 0)
		return -1;
	int pidfd = -1;
	pid_t pid = clone_child(assembly, spec, &pidfd, fault);
	if (pid < 0)
		return -1;
	if (sandbox_watch(sandbox, pid, pidfd) < 0) {
		fault_errno(fault, "watch process");
		close_fd(&pidfd);
		return -1; /* the channel closes, so the child goes by itself */
	}
	sandbox->process.ready = on_early_death;
	if (loop_watch(&sandbox->channel, assembly->launcher_end, on_channel) < 0)
		return fault_errno(fault, "watch channel");
	assembly->launcher_end = -1;
	return admit_child(sandbox, assembly, spec, fault);
}

static int check_layers(const struct launch_spec *spec, struct fault *fault)
{
	for (int i = 0; i < spec->layer_count; i++)
		if (!images_find(spec->layers[i]))
			return fault_set(fault, CODE_MISSING, "find layer", ENOENT, "layer %s is not mounted; ask for MOUNT_IMAGE first", spec->layers[i]);
	return 0;
}

/* The sandbox to start: a new one, or what is left of one that died. */
static struct sandbox *claim(const struct launch_spec *spec, const struct request *request, struct fault *fault)
{
	struct sandbox *sandbox = sandbox_find(spec->id), *owner = sandbox_with_slot(spec->slot);
	if (owner && owner != sandbox) {
		fault_set(fault, CODE_INVALID, "claim slot", EEXIST, "slot %llu belongs to sandbox %s", (unsigned long long)spec->slot, owner->id);
		return NULL;
	}
	if (check_layers(spec, fault) < 0)
		return NULL;
	if (sandbox && cgroup_remove(&launcher.cgroups, spec->id) < 0) {
		fault_set(fault, CODE_BUSY, "claim", EBUSY, "processes of a former sandbox %s are still there; destroy it", spec->id);
		return NULL;
	}
	if (!sandbox && !(sandbox = sandbox_add(spec->id))) {
		fault_set(fault, CODE_FULL, "claim", ENOMEM, "the launcher holds %d sandboxes already", SANDBOXES_MAX);
		return NULL;
	}
	if (sandbox_record(sandbox, request->body, request->length, fault) < 0) {
		if (!sandbox->has_slot)
			sandbox_drop(sandbox);
		return NULL;
	}
	return sandbox;
}

static void launch_new(const struct launch_spec *spec, const struct request *request)
{
	struct fault fault;
	struct sandbox *sandbox = claim(spec, request, &fault);
	if (!sandbox) {
		answer_fault(&request->ticket, &fault);
		return;
	}
	struct assembly assembly = {.storage = {-1, -1, -1}, .cgroup = {.birth = -1, .agent_procs = -1, .payload = -1, .oom = -1}, .listener = -1, .child_end = -1, .launcher_end = -1};
	sandbox->phase = SANDBOX_LAUNCHING;
	waiters_add(&sandbox->launch, &request->ticket);
	loop_set_timer(&sandbox->timer, LAUNCH_TIMEOUT_MS, on_timeout);
	int result = start(sandbox, &assembly, spec, &sandbox->fault);
	close_assembly(&assembly);
	if (result < 0)
		fail_launch(sandbox);
}

void launch_request(const struct request *request)
{
	struct launch_spec spec;
	struct fault fault;
	if (spec_parse(&spec, request->body, request->length, &fault) < 0) {
		answer_fault(&request->ticket, &fault);
		return;
	}
	struct sandbox *sandbox = sandbox_find(spec.id);
	if (tomb_exists(spec.id)) {
		fault_set(&fault, CODE_TOMBSTONE, "find tombstone", 0, "sandbox %s was destroyed", spec.id);
		answer_fault(&request->ticket, &fault);
	} else if (sandbox && sandbox->phase == SANDBOX_LIVE) {
		if (cgroup_seal(&launcher.cgroups, spec.id, &spec.limits, &fault) < 0) /* a launcher that died may have missed it */
			answer_fault(&request->ticket, &fault);
		else
			answer_live(&request->ticket, sandbox);
	} else if (sandbox && sandbox->phase == SANDBOX_LAUNCHING) {
		if (waiters_add(&sandbox->launch, &request->ticket))
			return;
		fault_set(&fault, CODE_BUSY, "join launch", EBUSY, "%d requests wait for sandbox %s already", WAITERS_MAX, spec.id);
		answer_fault(&request->ticket, &fault);
	} else if (sandbox && sandbox->phase == SANDBOX_ENDING) {
		fault_set(&fault, CODE_BUSY, "find sandbox", EBUSY, "a failed launch of sandbox %s is being cleared away; ask again", spec.id);
		answer_fault(&request->ticket, &fault);
	} else
		launch_new(&spec, request);
}
