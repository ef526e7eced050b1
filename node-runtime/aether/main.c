/*
 * Aether: PID 1 of a sandbox, and parent, pump and undertaker of every command in it. @paper §3.3
 *
 * It decides nothing that an Edge could decide: it starts what it is told to, once per exec id, keeps output and exit
 * records in files on the host that it was given, and ends the sandbox when its total life is over, Edge or no Edge.
 * node-runtime/launcher/PROTOCOL.md says how it is started and what is spoken.
 */
#include "command_state.h"
#include "confine.h"
#include "dial.h"
#include "life.h"
#include "limits.h"
#include "loop.h"
#include "oom.h"
#include "pids.h"
#include "relay.h"
#include "seccomp.h"
#include "spawn.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LISTENER_FD = 3, DIRECTORY_FD = 4, READY_FD = 5, PAYLOAD_FD = 6, OOM_FD = 7, PIDS_FD = 8, FIRST_GATE_FD = 9 };

static struct source children;

static void on_children(struct source *source, uint32_t events)
{
	struct signalfd_siginfo information;
	(void)events;
	/* one SIGCHLD stands for any number of children */
	while (read(source->fd, &information, sizeof information) > 0)
		continue;
	commands_reap();
}

static int watch_children(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	children = (struct source){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .ready = on_children};
	return children.fd < 0 ? -1 : loop_watch(&children, EPOLLIN);
}

static int close_on_exec(int fd)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Takes over what the launcher left open. 0, or -1 with errno. */
static int take_descriptors(void)
{
	struct stat status;
	int flags = fcntl(LISTENER_FD, F_GETFL), gates = 0;
	if (flags < 0 || fcntl(LISTENER_FD, F_SETFL, flags | O_NONBLOCK) < 0)
		return -1;
	for (int fd = LISTENER_FD; fd <= PIDS_FD; fd++)
		if (close_on_exec(fd) < 0)
			return -1;
	while (gates < GATES_MAX && close_on_exec(FIRST_GATE_FD + gates) == 0)
		gates++;
	if (fstat(PAYLOAD_FD, &status) < 0)
		return -1;
	commands_init(DIRECTORY_FD);
	oom_init(OOM_FD);
	pids_init(PIDS_FD);
	close(PIDS_FD);
	spawn_init(FIRST_GATE_FD, gates);
	tree_init(S_ISDIR(status.st_mode) ? PAYLOAD_FD : -1);
	return 0;
}

/* A command's pipes must never get the numbers 0…2: its process puts its own standard streams there. */
static int occupy_low_descriptors(void)
{
	int fd;
	do {
		fd = fcntl(LISTENER_FD, F_DUPFD_CLOEXEC, 0);
	} while (fd >= 0 && fd < LISTENER_FD);
	return fd < 0 ? -1 : close(fd);
}

static int raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -1;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit);
}

static int set_up(int argc, char **argv)
{
	if (argc != 2) {
		errno = EINVAL;
		return -1;
	}
	if (take_descriptors() < 0 || occupy_low_descriptors() < 0 || raise_descriptor_limit() < 0)
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || confine_signals() < 0 || confine_capabilities() < 0)
		return -1;
	seccomp_init();
	if (loop_open() < 0 || watch_children() < 0 || life_open(argv[1]) < 0)
		return -1;
	return connections_open(LISTENER_FD);
}

static void tell_ready(int problem)
{
	struct {
		char letter;
		char error_number[sizeof(int32_t)];
	} message = {.letter = problem ? 'E' : 'R'};
	__builtin_memcpy(message.error_number, &problem, sizeof message.error_number);
	ssize_t written = write(READY_FD, &message, problem ? sizeof message : 1);
	(void)written; /* a launcher that is gone does not stop a sandbox */
	close(READY_FD);
}

/* Of two waits, -1 being for ever. */
static int sooner(int left_ms, int right_ms)
{
	return right_ms >= 0 && (left_ms < 0 || right_ms < left_ms) ? right_ms : left_ms;
}

int main(int argc, char **argv)
{
	if (set_up(argc, argv) < 0) {
		tell_ready(errno);
		return 1;
	}
	tell_ready(0);
	for (;;) {
		int timeout_ms = sooner(sooner(commands_tick(), dials_tick()), relays_tick());
		if (connections_flush())
			timeout_ms = 0;
		loop_settle();
		loop_turn(timeout_ms);
	}
}
