#include "assembly.h"

#include "child.h"
#include "devices.h"
#include "files.h"
#include "launcher.h"
#include "overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

const struct assembly EMPTY_ASSEMBLY = {
	.storage = {-1, -1, -1, -1},
	.cgroup = {.birth = -1, .agent_procs = -1, .payload = -1, .oom = -1, .pids = -1},
	.listener = -1,
	.child_end = -1,
	.launcher_end = -1,
};

void assembly_close(struct assembly *assembly)
{
	storage_close(&assembly->storage);
	cgroup_close_handles(&assembly->cgroup);
	close_fd(&assembly->listener);
	close_fd(&assembly->child_end);
	close_fd(&assembly->launcher_end);
}

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

int assembly_make(struct assembly *assembly, const struct sandbox *sandbox, const struct launch_spec *spec, struct fault *fault)
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

/*
 * What no cgroup counts (inotify instances, pending signals, bytes in queues, namespaces) Linux counts by user, and what the users of
 * a namespace take also by its maker. Made by root, one sandbox could take all that the others and the host's root may have; so its
 * maker is a user of its own: the one that is root inside. The child has all rights in its namespaces either way.
 */
static pid_t clone_as(uid_t maker, struct clone_args *arguments)
{
	/* a change of the effective id alone: rights and all else stay */
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0 || setresuid((uid_t)-1, maker, (uid_t)-1) < 0)
		return -1;
	pid_t pid = (pid_t)syscall(SYS_clone3, arguments, sizeof *arguments);
	int error = errno;
	if (pid != 0 && setresuid((uid_t)-1, 0, (uid_t)-1) < 0)
		abort(); /* never go on as somebody else */
	errno = error;
	return pid;
}

pid_t assembly_clone(const struct assembly *assembly, const struct launch_spec *spec, int *pidfd, struct fault *fault)
{
	struct child_setup setup = {
		.hostname = spec->hostname, .life_seconds = spec->life_seconds, .limits = spec->limits,
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
	pid_t pid = clone_as(spec_owner(spec->slot), &arguments);
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

int assembly_admit(const struct assembly *assembly, const struct sandbox *sandbox, const struct launch_spec *spec, struct fault *fault)
{
	uid_t owner = spec_owner(spec->slot);
	char path[40];
	int mounts[GO_FDS] = {-1, -1, -1}, userns, result = -1;
	if (write_id_map(sandbox->pid, "uid_map", owner) < 0 || write_id_map(sandbox->pid, "gid_map", owner) < 0)
		return fault_errno(fault, "map ids");
	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)sandbox->pid);
	if ((userns = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return fault_errno(fault, "open user namespace");
	mounts[GO_ROOT] = overlay_make(sandbox->layers, sandbox->layer_count, &assembly->storage, userns, fault);
	if (mounts[GO_ROOT] >= 0)
		mounts[GO_DEV] = devices_make(owner, spec->limits.memory_mib, fault);
	if (mounts[GO_DEV] >= 0 && (mounts[GO_EMPTY] = open_tree(launcher.empty_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH)) < 0)
		fault_errno(fault, "clone empty directory");
	if (mounts[GO_EMPTY] >= 0 && (result = send_go(sandbox->channel.fd, mounts)) < 0)
		fault_errno(fault, "open the gate");
	close_fd(&mounts[GO_ROOT]);
	close_fd(&mounts[GO_DEV]);
	close_fd(&mounts[GO_EMPTY]);
	close_fd(&userns);
	return result;
}
