#include "command_state.h"

#include "limits.h"
#include "oom.h"
#include "record.h"
#include "tree.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

int command_kill_tree(struct command *command, enum end_reason reason)
{
	if (command->phase <= PHASE_RUNNING && command->reason == REASON_ENDED)
		command->reason = (uint8_t)reason;
	command->tree_killed = 1;
	/* once its leader is reaped, its number may be another process's: only a cgroup still names the rest */
	if (!command->has_cgroup && command->phase > PHASE_FAILED)
		return 0;
	return tree_kill(command->exec, command->pid);
}

static int failed(const struct command *command)
{
	return !WIFEXITED(command->wait_status) || WEXITSTATUS(command->wait_status) != 0;
}

/* Killed by 9, or a shell that says so of its child. */
static int looks_killed(const struct command *command)
{
	return WIFSIGNALED(command->wait_status) ? WTERMSIG(command->wait_status) == SIGKILL : WEXITSTATUS(command->wait_status) == 128 + SIGKILL;
}

static int is_alone(const struct command *command)
{
	for (const struct command *at = commands; at; at = at->next)
		if (at != command && (at->has_cgroup || at->phase < PHASE_ENDED))
			return 0;
	return 1;
}

/* Who was killed for memory: counted per command where the kernel does; else the count of all is this one's, if nothing speaks for another. */
static void blame(struct command *command)
{
	int own = command->has_cgroup ? tree_oom_kills(command->exec) : -1;
	uint64_t kills = own >= 0 ? (uint64_t)own : looks_killed(command) || is_alone(command) ? oom_claim(command->oom_before) : 0;
	command->oom_kills = kills > UINT16_MAX ? UINT16_MAX : (uint16_t)kills;
}

static void tell_end(struct command *command)
{
	command->phase = PHASE_ENDED;
	command->deadline_ms = 0;
	command->exit_due = command->record_due = 1;
	command->progress_due = 0;
}

/* What the tree's end was, as far as the leader's status and the kernel's counters say for sure. */
static enum end_reason reason_of(const struct command *command)
{
	if (command->reason == REASON_ENDED)
		return failed(command) && command->oom_kills > 0 ? REASON_OOM : REASON_ENDED;
	/* it ended by itself in the moment before the kill */
	if (WIFEXITED(command->wait_status))
		return REASON_ENDED;
	return (enum end_reason)command->reason;
}

/* 1 when a reader has to move on before all that was written is in the logs. */
static int drain(struct command *command)
{
	int out = output_drain(&command->out, exec_directory, command->exec, ".out");
	return output_drain(&command->err, exec_directory, command->exec, ".err") | out;
}

static int is_output_due(struct command *command)
{
	const uint64_t before = command->out.total + command->err.total;
	int out = output_is_due(&command->out, exec_directory, command->exec, ".out");
	int due = output_is_due(&command->err, exec_directory, command->exec, ".err") | out;
	if (command->out.total + command->err.total != before)
		command->progress_due = 1; /* the reader that all this waits for has to hear of it */
	return due;
}

void command_leader_ended(struct command *command, int wait_status)
{
	command->wait_status = wait_status;
	command->ended_at_ms = wall_ms();
	blame(command);
	command->reason = (uint8_t)reason_of(command);
	command->timeout_at_ms = 0;
	command->remove_due = 1;
	input_abandon(&command->in);
	if (!drain(command) && !command->tree_killed)
		return tell_end(command);
	/* a killed tree is told when it is gone: whoever looks after the answer finds none of it */
	command->phase = PHASE_DYING;
	command->deadline_ms = command->tree_killed ? monotonic_ms() + TREE_GONE_LIMIT_MS : 0;
}

static void try_remove_cgroup(struct command *command, int64_t now)
{
	if (command->remove_at_ms != 0 && now >= command->remove_at_ms)
		command->remove_due = 1;
	if (!command->remove_due || !command->has_cgroup || command->phase < PHASE_DYING)
		return;
	enum tree_state state = tree_remove(command->exec);
	command->remove_due = 0;
	command->has_cgroup = state != TREE_GONE;
	command->remove_at_ms = state == TREE_LEAVING ? now + TREE_LEAVING_RETRY_MS : 0;
}

/* A killed tree: its cgroup is, and nobody holds its pipes. Without cgroups the pipes alone have to tell. */
static int is_gone(struct command *command, int64_t now)
{
	if (!command->tree_killed || now >= command->deadline_ms)
		return 1;
	if (command->has_cgroup)
		return 0;
	(void)drain(command);
	return command->out.pipe.fd < 0 && command->err.pipe.fd < 0;
}

static int64_t clock_stopped_at_ms; /* 0: it runs */

/* What is left of a time-out when the clock stops is left when it runs again, or all of it when the command came later. */
static int64_t moved(int64_t at_ms, int64_t span_ms, int64_t now)
{
	int64_t began = at_ms - span_ms;
	return at_ms + now - (began > clock_stopped_at_ms ? began : clock_stopped_at_ms);
}

void commands_stop_clock(int stopped)
{
	int64_t now = monotonic_ms();
	if (stopped) {
		clock_stopped_at_ms = clock_stopped_at_ms ? clock_stopped_at_ms : now;
		return;
	}
	for (struct command *command = commands; clock_stopped_at_ms != 0 && command; command = command->next) {
		if (command->timeout_at_ms != 0)
			command->timeout_at_ms = moved(command->timeout_at_ms, (int64_t)command->timeout_ms, now);
		if (command->phase == PHASE_STARTING && command->deadline_ms != 0)
			command->deadline_ms = moved(command->deadline_ms, START_LIMIT_MS, now);
	}
	clock_stopped_at_ms = 0;
}

/* 0, none, while the clock stands. */
static int64_t timeout_of(const struct command *command)
{
	return clock_stopped_at_ms ? 0 : command->timeout_at_ms;
}

static int64_t start_limit_of(const struct command *command)
{
	return clock_stopped_at_ms && command->phase == PHASE_STARTING ? 0 : command->deadline_ms;
}

static void do_what_is_due(struct command *command, int64_t now)
{
	if (timeout_of(command) != 0 && now >= timeout_of(command)) {
		command->timeout_at_ms = 0;
		command_kill_tree(command, REASON_TIMEOUT);
	}
	if (command->phase == PHASE_STARTING && start_limit_of(command) != 0 && now >= start_limit_of(command)) {
		command->phase = PHASE_FAILED;
		command->failure = FAILED_OTHER;
		command->failure_errno = ETIMEDOUT;
		command->deadline_ms = 0;
		command_kill_tree(command, REASON_KILLED);
	}
	if (command->phase == PHASE_DYING && !is_output_due(command) && is_gone(command, now))
		tell_end(command);
	if (command->phase == PHASE_ENDED && command->record_due && now >= command->deadline_ms) {
		struct exit_body body = command_exit(command);
		command->record_due = record_write(exec_directory, &body) < 0;
		command->deadline_ms = command->record_due ? now + RECORD_RETRY_MS : 0;
	}
}

/* The record comes first: an Edge that was told of an end finds it again after its own. A full disk must not hide the end, though. */
static void announce(struct command *command, int64_t now)
{
	if (command->phase == PHASE_ENDED && command->exit_due) {
		struct exit_body body = command_exit(command);
		command->exit_due = connections_announce(FRAME_EXIT, &body, sizeof body) == 0;
	}
	if (command->progress_due && now >= command->progress_at_ms) {
		struct progress_body body = command_progress(command);
		command->progress_due = connections_announce(FRAME_PROGRESS, &body, sizeof body) == 0;
		command->progress_at_ms = now + PROGRESS_INTERVAL_MS;
	}
}

static int is_over(const struct command *command)
{
	return command->phase == PHASE_ENDED && !command->has_cgroup && !command->record_due && !command->exit_due &&
	       command->out.pipe.fd < 0 && command->err.pipe.fd < 0;
}

static int64_t earlier(int64_t left, int64_t right)
{
	return right != 0 && right < left ? right : left;
}

static int64_t next_wake(const struct command *command)
{
	int64_t wake = earlier(earlier(INT64_MAX, start_limit_of(command)), timeout_of(command));
	wake = earlier(wake, command->remove_at_ms);
	return command->progress_due ? earlier(wake, command->progress_at_ms) : wake;
}

int commands_tick(void)
{
	int64_t now = monotonic_ms(), wake = INT64_MAX;
	for (struct command **at = &commands, *command; (command = *at);) {
		try_remove_cgroup(command, now);
		do_what_is_due(command, now);
		announce(command, now);
		if (is_over(command))
			command->phase = PHASE_OVER;
		if (command->phase == PHASE_OVER) {
			*at = command->next;
			loop_bury(&command->grave);
			continue;
		}
		wake = earlier(wake, next_wake(command));
		at = &command->next;
	}
	if (!commands)
		output_release_scratch();
	if (wake == INT64_MAX)
		return -1;
	int64_t wait = wake <= now ? 0 : wake - now;
	return wait > INT32_MAX ? INT32_MAX : (int)wait;
}
