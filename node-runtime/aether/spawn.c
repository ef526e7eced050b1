#include "spawn.h"

#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum pipe_index { PIPE_STDIN, PIPE_STDOUT, PIPE_STDERR, PIPE_REPORT, PIPES };

static int gates[GATES_MAX];
static int gates_used;

void spawn_init(int first_gate, int gate_count)
{
	for (gates_used = 0; gates_used < gate_count; gates_used++)
		gates[gates_used] = first_gate + gates_used;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_pipes(int pipes[PIPES][2])
{
	for (int i = 0; i < PIPES; i++) {
		close_end(&pipes[i][0]);
		close_end(&pipes[i][1]);
	}
}

static int open_pipes(int pipes[PIPES][2])
{
	for (int i = 0; i < PIPES; i++)
		pipes[i][0] = pipes[i][1] = -1;
	for (int i = 0; i < PIPES; i++)
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			return -1;
	/* only our ends: the command's ends are blocking, as programs expect */
	const int ours[] = {pipes[PIPE_STDIN][1], pipes[PIPE_STDOUT][0], pipes[PIPE_STDERR][0], pipes[PIPE_REPORT][0]};
	for (int i = 0; i < PIPES; i++)
		if (fcntl(ours[i], F_SETFL, O_NONBLOCK) < 0)
			return -1;
	return 0;
}

static pid_t clone_child(int cgroup_fd)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	if (cgroup_fd >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

enum start_failure spawn_command(const struct start_request *request, int cgroup_fd, struct spawned *out)
{
	int pipes[PIPES][2], problem;
	if (open_pipes(pipes) < 0) {
		problem = errno;
		close_pipes(pipes);
		errno = problem;
		return FAILED_BUSY;
	}
	out->pid = clone_child(cgroup_fd);
	if (out->pid == 0) {
		struct child_plan plan = {
			.request = request,
			.stdin_fd = pipes[PIPE_STDIN][0],
			.stdout_fd = pipes[PIPE_STDOUT][1],
			.stderr_fd = pipes[PIPE_STDERR][1],
			.report_fd = pipes[PIPE_REPORT][1],
			.gates = gates,
			.gate_count = gates_used,
		};
		child_run(&plan);
	}
	problem = errno;
	if (out->pid < 0) {
		close_pipes(pipes);
		errno = problem;
		return problem == EAGAIN ? FAILED_PIDS : FAILED_OTHER;
	}
	if (request->stdin_mode == STDIN_NONE)
		close_end(&pipes[PIPE_STDIN][1]); /* no writer: end of file at the first read */
	out->stdin_fd = pipes[PIPE_STDIN][1];
	out->stdout_fd = pipes[PIPE_STDOUT][0];
	out->stderr_fd = pipes[PIPE_STDERR][0];
	out->report_fd = pipes[PIPE_REPORT][0];
	close(pipes[PIPE_STDIN][0]);
	close(pipes[PIPE_STDOUT][1]);
	close(pipes[PIPE_STDERR][1]);
	close(pipes[PIPE_REPORT][1]);
	return FAILED_NOT;
}
