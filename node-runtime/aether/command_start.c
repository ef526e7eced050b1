#include "command_state.h"

#include "child.h"
#include "limits.h"
#include "oom.h"
#include "spawn.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static void answer_failure(connection_serial to, uint64_t id, const char *exec, uint16_t failure, int error_number)
{
	struct start_failed_body body = {.code = failure, .error_number = error_number};
	memcpy(body.exec, exec, EXEC_ID_LENGTH);
	if (to != 0 && connection_alive(to))
		connection_answer(to, FRAME_START_FAILED, id, &body, sizeof body);
	else
		(void)connections_announce(FRAME_START_FAILED, &body, sizeof body); /* a new Edge saw it starting */
}

static enum start_failure failure_of_log(int error_number)
{
	switch (error_number) {
	case EEXIST:
		return FAILED_KNOWN;
	case ENOSPC:
	case EDQUOT:
		return FAILED_NO_SPACE;
	case EMFILE:
	case ENFILE:
		return FAILED_BUSY;
	default:
		return FAILED_OTHER;
	}
}

static void remove_log(const char *exec, const char *suffix)
{
	char name[EXEC_ID_BYTES + 8];
	memcpy(name, exec, EXEC_ID_LENGTH);
	strcpy(name + EXEC_ID_LENGTH, suffix);
	unlinkat(exec_directory, name, 0);
}

static size_t count_commands(void)
{
	size_t count = 0;
	for (struct command *at = commands; at; at = at->next)
		count++;
	return count;
}

static void on_report(struct source *source, uint32_t events)
{
	(void)events;
	command_resolve_start((struct command *)((char *)source - offsetof(struct command, report)));
}

static void on_input(struct source *source, uint32_t events)
{
	(void)events;
	input_push((struct input *)((char *)source - offsetof(struct input, pipe)));
}

static struct command *make(const struct start_request *request, int log_fd)
{
	struct command *command = calloc(1, sizeof *command);
	if (!command)
		return NULL;
	memcpy(command->exec, request->exec, EXEC_ID_LENGTH);
	command->report = (struct source){.fd = -1, .ready = on_report};
	command->out = (struct output){.pipe = {.fd = -1, .ready = command_out_ready}, .log_fd = log_fd, .limit = request->limit_out};
	command->err = (struct output){.pipe = {.fd = -1, .ready = command_err_ready}, .log_fd = -1, .limit = request->limit_err};
	command->has_terminal = request->rows > 0;
	command->out.is_terminal = command->in.is_terminal = command->has_terminal;
	command->out.hold = command->out.was_held = command->err.hold = command->err.was_held = request->hold ? 1 : 0;
	command->out.roll = command->err.roll = request->roll ? 1 : 0;
	command->in.pipe = (struct source){.fd = -1, .ready = on_input};
	command->in.closed = request->stdin_mode != STDIN_OPEN;
	command->timeout_ms = request->timeout_ms;
	return command;
}

/* Starts the process. FAILED_NOT, or why not (errno); then no cgroup is left. */
static enum start_failure spawn(struct command *command, const struct start_request *request)
{
	int cgroup_fd = -1;
	struct spawned spawned;
	if (tree_has_cgroups()) {
		cgroup_fd = tree_make(command->exec);
		if (cgroup_fd < 0)
			return errno == EAGAIN || errno == EMFILE || errno == ENFILE ? FAILED_BUSY : FAILED_OTHER;
		command->has_cgroup = 1;
	}
	command->started_at_ms = wall_ms();
	command->oom_before = oom_count();
	enum start_failure failure = spawn_command(request, cgroup_fd, &spawned);
	int problem = errno;
	if (cgroup_fd >= 0)
		close(cgroup_fd);
	if (failure != FAILED_NOT) {
		if (command->has_cgroup)
			tree_remove(command->exec);
		errno = problem;
		return failure;
	}
	command->pid = spawned.pid;
	command->report.fd = spawned.report_fd;
	command->out.pipe.fd = spawned.stdout_fd;
	command->err.pipe.fd = spawned.stderr_fd;
	command->in.pipe.fd = spawned.stdin_fd;
	return FAILED_NOT;
}

static int watch(struct command *command)
{
	if (loop_watch(&command->report, EPOLLIN) < 0 || loop_watch(&command->out.pipe, EPOLLIN) < 0)
		return -1;
	return command->has_terminal ? 0 : loop_watch(&command->err.pipe, EPOLLIN); /* a terminal is one stream */
}

/* Inline bytes are the whole input: taken over at offset 0, closed behind the last. No input on a terminal is its end, typed. */
static void feed_inline(struct command *command, const struct start_request *request)
{
	if (request->stdin_mode == STDIN_OPEN || (request->stdin_mode == STDIN_NONE && !command->has_terminal))
		return;
	command->in.closed = 0;
	if (input_accept(&command->in, 0, request->stdin_bytes, request->stdin_length, 1) != 0)
		command_kill_tree(command, REASON_KILLED); /* out of memory: half an input would be worse than none */
	input_push(&command->in);
}

void command_start(connection_serial from, uint64_t id, const struct start_request *request)
{
	int log_fd = output_make_log(exec_directory, request->exec, ".out");
	if (log_fd < 0)
		return answer_failure(from, id, request->exec, (uint16_t)failure_of_log(errno), errno);
	struct command *command = NULL;
	enum start_failure failure = FAILED_BUSY;
	errno = EAGAIN;
	if (count_commands() < COMMANDS_MAX) {
		command = make(request, log_fd);
		failure = command ? spawn(command, request) : FAILED_OTHER;
	}
	if (failure != FAILED_NOT) {
		int problem = errno;
		free(command);
		close(log_fd);
		remove_log(request->exec, ".out");
		return answer_failure(from, id, request->exec, (uint16_t)failure, problem);
	}
	command->asker = from;
	command->asker_id = id;
	command->deadline_ms = monotonic_ms() + START_LIMIT_MS;
	command->timeout_at_ms = command->timeout_ms ? monotonic_ms() + (int64_t)command->timeout_ms : 0;
	command->next = commands;
	commands = command;
	feed_inline(command, request);
	if (watch(command) < 0) {
		command->failure = FAILED_BUSY;
		command->failure_errno = errno;
		command->phase = PHASE_FAILED;
		command_kill_tree(command, REASON_KILLED);
	}
}

void command_resolve_start(struct command *command)
{
	struct child_report report;
	ssize_t got = read(command->report.fd, &report, sizeof report);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	loop_close(&command->report);
	command->deadline_ms = 0;
	if (got == (ssize_t)sizeof report) {
		command->failure = report.failure;
		command->failure_errno = report.error_number;
		command->phase = PHASE_FAILED;
		return;
	}
	command->phase = PHASE_RUNNING;
	struct started_body body = {.pid = command->pid, .started_at_ms = command->started_at_ms};
	connection_answer(command->asker, FRAME_STARTED, command->asker_id, &body, sizeof body);
}

void command_fail(struct command *command)
{
	loop_close(&command->report);
	input_abandon(&command->in);
	output_close(&command->out);
	output_close(&command->err);
	remove_log(command->exec, ".out");
	remove_log(command->exec, ".err");
	if (command->has_cgroup)
		tree_remove(command->exec);
	answer_failure(command->asker, command->asker_id, command->exec, command->failure, command->failure_errno);
	command->phase = PHASE_OVER;
}
