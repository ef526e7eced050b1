#include "command_state.h"

#include "limits.h"
#include "record.h"
#include "tree.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

struct command *commands;
int exec_directory = -1;

void commands_init(int directory)
{
	exec_directory = directory;
}

struct command *command_find(const char *exec)
{
	struct command *at = commands;
	while (at && (at->phase == PHASE_OVER || memcmp(at->exec, exec, EXEC_ID_LENGTH) != 0))
		at = at->next;
	return at;
}

struct progress_body command_progress(const struct command *command)
{
	struct progress_body body = {
		.total_out = command->out.total,
		.stored_out = command->out.stored,
		.discarded_out = command->out.discarded,
		.total_err = command->err.total,
		.stored_err = command->err.stored,
		.discarded_err = command->err.discarded,
		.started_at_ms = command->started_at_ms,
		.drop_out = command->out.drop,
		.drop_err = command->err.drop,
	};
	memcpy(body.exec, command->exec, EXEC_ID_LENGTH);
	return body;
}

struct exit_body command_exit(const struct command *command)
{
	return (struct exit_body){
		.progress = command_progress(command),
		.ended_at_ms = command->ended_at_ms,
		.wait_status = command->wait_status,
		.reason = command->reason,
		.pipes_open = command->out.pipe.fd >= 0 || command->err.pipe.fd >= 0,
		.oom_kills = command->oom_kills,
	};
}

static void answer_error(connection_serial to, uint64_t id, int code)
{
	struct error_body body = {.code = (uint16_t)code};
	connection_answer(to, FRAME_ERROR, id, &body, sizeof body);
}

void command_feed(connection_serial from, uint64_t id, const struct stdin_request *request)
{
	struct command *command = command_find(request->exec);
	if (!command || command->phase > PHASE_RUNNING)
		return answer_error(from, id, ERROR_UNKNOWN_EXEC);
	if (request->offset + request->length > command->in.received)
		command->fed = walk_moment();
	int problem = input_accept(&command->in, request->offset, request->bytes, request->length, request->close);
	if (problem != 0)
		return answer_error(from, id, problem < 0 ? ERROR_STDIN_BUSY : problem);
	if (command->in.waiter != 0) /* an older asker of the same bytes: the newer one gets the answer */
		answer_error(command->in.waiter, command->in.waiter_id, ERROR_STDIN_BUSY);
	command->in.waiter = from;
	command->in.waiter_id = id;
	input_push(&command->in);
}

int command_signal(const struct signal_request *request)
{
	struct command *command = command_find(request->exec);
	if (!command)
		return 0;
	if (request->since_input)
		return command->phase == PHASE_RUNNING && tree_kill_since(command->exec, command->pid, &command->fed);
	if (request->tree)
		return command_kill_tree(command, REASON_KILLED);
	if (command->phase > PHASE_RUNNING || kill(command->pid, request->signal_number) < 0)
		return 0;
	if (request->signal_number == SIGKILL && command->reason == REASON_ENDED)
		command->reason = REASON_KILLED;
	return 1;
}

void command_query(connection_serial from, uint64_t id, const char *exec)
{
	const struct command *command = command_find(exec);
	struct exit_body body;
	if (command && command->phase < PHASE_ENDED) {
		struct progress_body progress = command_progress(command);
		return connection_answer(from, FRAME_PROGRESS, id, &progress, sizeof progress);
	}
	if (command)
		body = command_exit(command);
	else if (record_read(exec_directory, exec, &body) < 0)
		return connection_answer(from, FRAME_UNKNOWN, id, NULL, 0);
	connection_answer(from, FRAME_EXIT, id, &body, sizeof body);
}

int command_resize(const struct resize_request *request)
{
	const struct command *command = command_find(request->exec);
	struct winsize size = {.ws_row = request->rows, .ws_col = request->columns};
	return command && command->has_terminal && command->out.pipe.fd >= 0 && ioctl(command->out.pipe.fd, TIOCSWINSZ, &size) == 0;
}

void command_window(connection_serial from, uint64_t id, const struct window_request *request)
{
	struct command *command = command_find(request->exec);
	if (command)
		output_set_window(request->is_err ? &command->err : &command->out, request->discard, request->hold);
	command_query(from, id, request->exec);
}

static void take_output(struct command *command, struct output *output, const char *suffix)
{
	enum pump_result result = output_pump(output, exec_directory, command->exec, suffix);
	if (result != PUMP_CLOSED) {
		command->progress_due = 1;
		if (result == PUMP_HELD)
			command->progress_at_ms = 0; /* nothing goes on before its reader has heard of this */
		return;
	}
	output_close(output);
	/* the last writer in the background has gone: the record and the Edge get the final counts */
	if (command->phase == PHASE_ENDED && command->out.pipe.fd < 0 && command->err.pipe.fd < 0)
		command->exit_due = command->record_due = 1;
}

void command_out_ready(struct source *source, uint32_t events)
{
	struct command *command = (struct command *)((char *)source - offsetof(struct command, out.pipe));
	(void)events;
	take_output(command, &command->out, ".out");
}

void command_err_ready(struct source *source, uint32_t events)
{
	struct command *command = (struct command *)((char *)source - offsetof(struct command, err.pipe));
	(void)events;
	take_output(command, &command->err, ".err");
}

static struct command *find_leader(pid_t pid)
{
	struct command *at = commands;
	while (at && (at->pid != pid || at->phase > PHASE_FAILED))
		at = at->next;
	return at;
}

void commands_reap(void)
{
	int status, orphans = 0;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct command *command = find_leader(pid);
		if (!command) {
			orphans = 1; /* PID 1 buries them */
			continue;
		}
		if (command->phase == PHASE_STARTING)
			command_resolve_start(command);
		if (command->phase == PHASE_FAILED)
			command_fail(command);
		else
			command_leader_ended(command, status);
	}
	for (struct command *at = commands; at && orphans; at = at->next)
		at->remove_due = 1; /* it may have been the last one of any tree */
}
