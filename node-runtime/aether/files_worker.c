#include "files_worker.h"

#include "confine.h"
#include "files_request.h"
#include "frame.h"
#include "identity.h"
#include "limits.h"
#include "seccomp.h"
#include "spawn.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CONNECTION_FD = 3 };

static enum channel_result serve(const struct channel_frame *frame)
{
	switch (frame->type) {
	case FILE_STAT:
		return files_stat(frame);
	case FILE_LIST:
		return files_list(frame);
	case FILE_READ:
		return files_read(frame);
	case FILE_WRITE:
		return files_write(frame);
	case FILE_APPEND:
		return files_append(frame);
	case FILE_MKDIR:
		return files_mkdir(frame);
	case FILE_MOVE:
		return files_move(frame);
	case FILE_REMOVE:
		return files_remove(frame);
	case FILE_PACK:
		return files_pack(frame);
	case FILE_UNPACK:
		return files_unpack(frame);
	case FILE_WATCH:
		return files_watch(frame);
	default:
		return CHANNEL_MALFORMED;
	}
}

_Noreturn static void serve_until_closed(void)
{
	struct channel_frame frame;
	enum channel_result result;
	do {
		result = channel_receive(&frame);
		if (result == CHANNEL_OK)
			result = serve(&frame);
	} while (result == CHANNEL_OK);
	if (result == CHANNEL_MALFORMED)
		(void)channel_fail_at(REASON_MALFORMED, EPROTO, NULL);
	_exit(0);
}

/* 0, or -1 with errno and *reason. */
static int become(const char *user, enum file_reason *reason)
{
	static struct identity identity;
	*reason = REASON_NO_USER;
	errno = ENOENT;
	if (identity_resolve(user, "/etc/passwd", "/etc/group", &identity) < 0)
		return -1;
	*reason = REASON_ERRNO;
	if (seccomp_apply() < 0 || confine_process() < 0 || setgroups(identity.group_count, identity.groups) < 0)
		return -1;
	if (setresgid(identity.gid, identity.gid, identity.gid) < 0 || setresuid(identity.uid, identity.uid, identity.uid) < 0) {
		*reason = errno == EINVAL ? REASON_NO_USER : REASON_ERRNO; /* EINVAL: outside the sandbox's id range */
		return -1;
	}
	return prctl(PR_SET_DUMPABLE, 0); /* a change of ids may have set it again */
}

/* Only the connection stays open, and it may block. */
static int keep_connection(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 || dup3(fd, CONNECTION_FD, O_CLOEXEC) < 0)
		return -1;
	channel_open(CONNECTION_FD);
	return (int)syscall(SYS_close_range, CONNECTION_FD + 1, ~0u, 0);
}

_Noreturn static void give_up(int fd, uint64_t id, enum file_reason reason)
{
	struct file_failed_body body = {.reason = (uint16_t)reason, .error_number = errno};
	int told = frame_send(fd, FILE_FAILED, id, &body, sizeof body);
	_exit(told < 0 ? 1 : 0);
}

_Noreturn static void run(int connection_fd, uint64_t id, const char *user)
{
	enum file_reason reason = REASON_ERRNO;
	if (spawn_pass_gates() < 0)
		give_up(connection_fd, id, errno == EAGAIN ? REASON_NO_PROCESS : REASON_ERRNO);
	if (keep_connection(connection_fd) < 0)
		_exit(1);
	umask(0); /* modes are what the request says */
	if (setsid() < 0 || become(user, &reason) < 0)
		give_up(CONNECTION_FD, id, reason);
	if (frame_send(CONNECTION_FD, FILE_READY, id, NULL, 0) == 0)
		serve_until_closed();
	_exit(0);
}

void files_start(int connection_fd, uint64_t id, const char *user)
{
	int cgroup_fd = -1;
	pid_t pid = -1;
	if (!tree_has_cgroups() || (cgroup_fd = tree_open_files()) >= 0)
		pid = spawn_clone(cgroup_fd);
	if (pid == 0)
		run(connection_fd, id, user);
	int problem = errno;
	if (cgroup_fd >= 0)
		close(cgroup_fd);
	if (pid > 0)
		return;
	struct file_failed_body body = {.reason = problem == EAGAIN ? REASON_NO_PROCESS : REASON_ERRNO, .error_number = problem};
	(void)frame_send(connection_fd, FILE_FAILED, id, &body, sizeof body); /* its Edge sees the connection closed otherwise */
}
