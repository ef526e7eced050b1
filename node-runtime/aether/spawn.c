#include "spawn.h"

#include "limits.h"
#include "pids.h"
#include "terminal.h"

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

int spawn_pass_gates(void)
{
	for (int i = 0; i < gates_used; i++)
		if (write(gates[i], "0", 1) != 1)
			return -1;
	errno = EAGAIN;
	return pids_are_over() ? -1 : 0;
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

static int open_pipe(int ends[2], int ours)
{
	/* only our end: the command's is blocking, as programs expect */
	return pipe2(ends, O_CLOEXEC) < 0 ? -1 : fcntl(ends[ours], F_SETFL, O_NONBLOCK);
}

/* Input and output as two ends each, ours and the command's; on a terminal all three are the same. */
static int open_streams(const struct start_request *request, int pipes[PIPES][2])
{
	struct terminal terminal;
	if (open_pipe(pipes[PIPE_REPORT], 0) < 0)
		return -1;
	if (request->rows == 0)
		return open_pipe(pipes[PIPE_STDIN], 1) < 0 || open_pipe(pipes[PIPE_STDOUT], 0) < 0 ? -1 : open_pipe(pipes[PIPE_STDERR], 0);
	if (terminal_open(&terminal, request->rows, request->columns) < 0)
		return -1;
	pipes[PIPE_STDIN][1] = fcntl(terminal.master, F_DUPFD_CLOEXEC, 0);
	pipes[PIPE_STDOUT][0] = terminal.master;
	pipes[PIPE_STDOUT][1] = terminal.slave;
	return pipes[PIPE_STDIN][1] < 0 ? -1 : 0;
}

pid_t spawn_clone(int cgroup_fd)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	if (pids_are_full()) {
		errno = EAGAIN;
		return -1;
	}
	if (cgroup_fd >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

_Noreturn static void run_child(const struct start_request *request, int pipes[PIPES][2])
{
	const int terminal = request->rows > 0;
	struct child_plan plan = {
		.request = request,
		.stdin_fd = terminal ? pipes[PIPE_STDOUT][1] : pipes[PIPE_STDIN][0],
		.stdout_fd = pipes[PIPE_STDOUT][1],
		.stderr_fd = terminal ? pipes[PIPE_STDOUT][1] : pipes[PIPE_STDERR][1],
		.report_fd = pipes[PIPE_REPORT][1],
		.gates = gates,
		.gate_count = gates_used,
	};
	child_run(&plan);
}

enum start_failure spawn_command(const struct start_request *request, int cgroup_fd, struct spawned *out)
{
	int pipes[PIPES][2], problem;
	for (int i = 0; i < PIPES; i++)
		pipes[i][0] = pipes[i][1] = -1;
	if (open_streams(request, pipes) < 0) {
		problem = errno;
		close_pipes(pipes);
		errno = problem;
		return FAILED_BUSY;
	}
	out->pid = spawn_clone(cgroup_fd);
	if (out->pid == 0)
		run_child(request, pipes);
	problem = errno;
	if (out->pid < 0) {
		close_pipes(pipes);
		errno = problem;
		return problem == EAGAIN ? FAILED_PIDS : FAILED_OTHER;
	}
	if (request->stdin_mode == STDIN_NONE && request->rows == 0)
		close_end(&pipes[PIPE_STDIN][1]); /* no writer: end of file at the first read */
	out->stdin_fd = pipes[PIPE_STDIN][1];
	out->stdout_fd = pipes[PIPE_STDOUT][0];
	out->stderr_fd = pipes[PIPE_STDERR][0];
	out->report_fd = pipes[PIPE_REPORT][0];
	close_end(&pipes[PIPE_STDIN][0]);
	close_end(&pipes[PIPE_STDOUT][1]);
	close_end(&pipes[PIPE_STDERR][1]);
	close_end(&pipes[PIPE_REPORT][1]);
	return FAILED_NOT;
}
