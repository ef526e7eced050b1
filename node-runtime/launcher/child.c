#include "child.h"

#include "files.h"
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	AETHER_FIRST_FD = 3, /* PROTOCOL.md */
	AETHER_FIXED_FDS = 6,
	SAFE_FD = 100, /* above everything that is put into place */
};

const char *child_step_name(unsigned step)
{
	static const char *const NAMES[STEP_COUNT] = {
		[STEP_GATE] = "wait at the gate", [STEP_IDENTITY] = "become root of the sandbox", [STEP_CGROUP] = "enter cgroups",
		[STEP_PROPAGATION] = "make mounts private", [STEP_ROOT] = "attach root", [STEP_PROC] = "mount /proc",
		[STEP_PROC_MASK] = "protect /proc", [STEP_DEV] = "mount /dev", [STEP_DEV_PTS] = "mount /dev/pts", [STEP_DEV_SHM] = "mount /dev/shm",
		[STEP_DEV_MQUEUE] = "mount /dev/mqueue", [STEP_SYS] = "mount /sys", [STEP_SYS_MASK] = "protect /sys", [STEP_FACTS] = "tell the limits", [STEP_TMP] = "make /tmp",
		[STEP_ETC] = "mount names in /etc", [STEP_PIVOT] = "change root", [STEP_HOSTNAME] = "set host name", [STEP_LOOPBACK] = "bring lo up",
		[STEP_SESSION] = "make session", [STEP_DESCRIPTORS] = "place descriptors", [STEP_EXEC] = "start Aether",
	};
	return step < STEP_COUNT ? NAMES[step] : "unknown step";
}

static _Noreturn void give_up(int channel, enum child_step step)
{
	struct child_report report = {.letter = 'C', .step = (uint8_t)step, .error = errno};
	send(channel, &report, sizeof report, MSG_NOSIGNAL);
	_exit(1);
}

/* Waits for the launcher to have written the id maps; takes the mounts it made. */
static int pass_gate(int channel, int mounts[GO_FDS])
{
	char byte, control[CMSG_SPACE(GO_FDS * sizeof(int))];
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	ssize_t got;
	do
		got = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got == 0)
		_exit(1); /* the launch was given up, or the launcher died */
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	if (got < 0)
		return -1;
	if (!rights || rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(GO_FDS * sizeof(int))) {
		errno = EPROTO;
		return -1;
	}
	memcpy(mounts, CMSG_DATA(rights), GO_FDS * sizeof(int));
	return 0;
}

static int become_root(int channel)
{
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -1;
	/* until exec a dead launcher takes its half-made sandboxes along; asked only now, because a change of ids forgets it */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -1;
	char byte;
	if (recv(channel, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		_exit(1);
	return 0;
}

/*
 * The namespace's root is the group that the process is in by then; v2 wants Aether out of it, so that controllers can be turned on, and
 * where the group is the payload itself, Aether leaves it again.
 */
static int enter_cgroups(const struct cgroup_handles *cgroup)
{
	for (int i = 0; i < cgroup->gate_count; i++)
		if (write(cgroup->entries[i], "0", 1) != 1)
			return -1;
	if (unshare(CLONE_NEWCGROUP) < 0)
		return -1;
	for (int i = 0; i < cgroup->gate_count; i++)
		if (cgroup->exits[i] >= 0 && write(cgroup->exits[i], "0", 1) != 1)
			return -1;
	return cgroup->agent_procs >= 0 && write(cgroup->agent_procs, "0", 1) != 1 ? -1 : 0;
}

/* The working directory is the empty run/root, in this namespace's own copy of the host's tree. */
static int attach_root(int root)
{
	return move_mount(root, "", AT_FDCWD, ".", MOVE_MOUNT_F_EMPTY_PATH) < 0 || fchdir(root) < 0 ? -1 : 0;
}

static int change_root(void)
{
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		return -1;
	return chdir("/");
}

/* IPv6 follows: the kernel gives ::1 when lo comes up. */
static int bring_loopback_up(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int result = ioctl(fd, SIOCSIFFLAGS, &request);
	close_fd(&fd);
	return result;
}

static int make_session(void)
{
	struct rlimit files, none = {CORE_BYTES_NONE, CORE_BYTES_NONE};
	if (setsid() < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -1;
	if (files.rlim_max > NOFILE_MAX)
		files.rlim_max = NOFILE_MAX;
	files.rlim_cur = files.rlim_max;
	umask(022);
	return setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 ? -1 : 0;
}

/* Puts everything at the numbers of PROTOCOL.md. Moves the channel and Aether's descriptor; returns 0 or -1. */
static int place_descriptors(const struct child_setup *setup, int *channel, int *aether)
{
	int sources[AETHER_FIXED_FDS + HIERARCHIES_MAX] = {setup->listener, setup->exec_dir, setup->channel, -1, -1, -1};
	int count = AETHER_FIXED_FDS + setup->cgroup->gate_count;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -1;
	sources[3] = setup->cgroup->payload >= 0 ? setup->cgroup->payload : null;
	sources[4] = setup->cgroup->oom >= 0 ? setup->cgroup->oom : null;
	sources[5] = setup->cgroup->pids >= 0 ? setup->cgroup->pids : null;
	for (int i = 0; i < setup->cgroup->gate_count; i++)
		sources[AETHER_FIXED_FDS + i] = setup->cgroup->gates[i];
	/* first out of the way of the final numbers, then down */
	for (int i = 0; i < count; i++)
		if ((sources[i] = fcntl(sources[i], F_DUPFD_CLOEXEC, SAFE_FD)) < 0)
			return -1;
	if ((*aether = fcntl(setup->aether, F_DUPFD_CLOEXEC, SAFE_FD)) < 0 || (null = fcntl(null, F_DUPFD_CLOEXEC, SAFE_FD)) < 0)
		return -1;
	*channel = sources[2];
	for (int fd = 0; fd < AETHER_FIRST_FD; fd++)
		if (dup2(null, fd) < 0)
			return -1;
	for (int i = 0; i < count; i++)
		if (dup2(sources[i], AETHER_FIRST_FD + i) < 0)
			return -1;
	*channel = AETHER_FIRST_FD + 2;
	int last = AETHER_FIRST_FD + count;
	if (dup3(*aether, last, O_CLOEXEC) < 0)
		return -1;
	*aether = last;
	return close_range((unsigned)last + 1, ~0u, 0);
}

static _Noreturn void start_aether(const struct child_setup *setup, int channel)
{
	int aether;
	char life[24], *arguments[] = {"aether", life, NULL}, *environment[] = {NULL};
	snprintf(life, sizeof life, "%llu", (unsigned long long)setup->life_seconds);
	if (place_descriptors(setup, &channel, &aether) < 0)
		give_up(channel, STEP_DESCRIPTORS);
	prctl(PR_SET_PDEATHSIG, 0);
	execveat(aether, "", arguments, environment, AT_EMPTY_PATH);
	give_up(channel, STEP_EXEC);
}

_Noreturn void child_run(const struct child_setup *setup)
{
	int channel = setup->channel, mounts[GO_FDS];
	enum child_step step;
	close(setup->launcher_end);
	signal(SIGPIPE, SIG_DFL);
	if (pass_gate(channel, mounts) < 0)
		give_up(channel, STEP_GATE);
	if (become_root(channel) < 0)
		give_up(channel, STEP_IDENTITY);
	if (enter_cgroups(setup->cgroup) < 0)
		give_up(channel, STEP_CGROUP);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		give_up(channel, STEP_PROPAGATION);
	if (attach_root(mounts[GO_ROOT]) < 0)
		give_up(channel, STEP_ROOT);
	if (inside_mount_all(mounts, &setup->limits, setup->hostname, &step) < 0)
		give_up(channel, step);
	if (change_root() < 0)
		give_up(channel, STEP_PIVOT);
	if (sethostname(setup->hostname, strlen(setup->hostname)) < 0)
		give_up(channel, STEP_HOSTNAME);
	if (bring_loopback_up() < 0)
		give_up(channel, STEP_LOOPBACK);
	if (make_session() < 0)
		give_up(channel, STEP_SESSION);
	start_aether(setup, channel);
}
