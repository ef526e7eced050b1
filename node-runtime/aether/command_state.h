/* What is known of one command, shared by the files that make up its life: command_start.c, command.c, command_end.c. */
#ifndef AETHER_COMMAND_STATE_H
#define AETHER_COMMAND_STATE_H

#include "command.h"
#include "input.h"
#include "output.h"
#include "walk.h"
#include "wire.h"

#include <sys/types.h>

enum command_phase {
	PHASE_STARTING, /* forked, not yet executed */
	PHASE_RUNNING,
	PHASE_FAILED, /* will not execute; its process is not reaped yet */
	PHASE_DYING,  /* leader reaped; the rest of a killed tree is still ending, or output is held back for its reader */
	PHASE_ENDED,  /* told; something of it may live on */
	PHASE_OVER,   /* nothing is left: forgotten at the end of the turn */
};

struct command {
	struct grave grave;
	struct command *next;
	char exec[EXEC_ID_BYTES];
	enum command_phase phase;
	pid_t pid;
	struct source report;
	struct output out, err;
	struct input in;
	struct moment fed; /* when its newest input came */
	connection_serial asker; /* of START */
	uint64_t asker_id;
	uint16_t failure; /* enum start_failure, once known */
	int32_t failure_errno;
	uint8_t reason; /* enum end_reason */
	uint8_t tree_killed, has_cgroup, has_terminal;
	uint16_t oom_kills;
	uint64_t oom_before; /* kills for memory in the whole sandbox when it started */
	uint8_t progress_due, exit_due, record_due, remove_due;
	int32_t wait_status;
	uint64_t started_at_ms, ended_at_ms; /* wall clock */
	/* Monotonic; 0: none. One at a time: to have executed, to have ended, to be gone with the whole tree, to write again. */
	int64_t deadline_ms;
	uint64_t timeout_ms; /* 0: none */
	int64_t timeout_at_ms;
	int64_t progress_at_ms; /* not before */
	int64_t remove_at_ms;   /* 0: at the next death of an orphan */
};

extern struct command *commands;
/* Directory of logs and records on the host. */
extern int exec_directory;

void commands_init(int directory);

struct command *command_find(const char *exec);
struct progress_body command_progress(const struct command *command);
struct exit_body command_exit(const struct command *command);

/* The report of a STARTING command is there, or its process is dead: STARTED or START_FAILED. */
void command_resolve_start(struct command *command);
/* The process of a FAILED command is reaped: no trace of it stays, and its asker is told. */
void command_fail(struct command *command);

/* SIGKILL to all of it; the end carries `reason` when the leader had not ended before. 1 when something was killed. */
int command_kill_tree(struct command *command, enum end_reason reason);
void command_leader_ended(struct command *command, int wait_status);
/* The streams' handlers. */
void command_out_ready(struct source *source, uint32_t events);
void command_err_ready(struct source *source, uint32_t events);

#endif
