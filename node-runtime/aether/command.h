/*
 * The commands of this sandbox: from START to the moment nothing of one is left. Aether is parent and pump of each.
 *
 * A command ends when its first process (the leader) ends; what that process left in the background lives on, its output
 * still flows into the same logs, and its cgroup still names it. @paper §3.3
 * INV-EXEC-ONCE: an exec id is started at most once; the `.out` file, made with O_EXCL, is the memory of that.
 */
#ifndef AETHER_COMMAND_H
#define AETHER_COMMAND_H

#include "connection.h"
#include "request.h"

/* STARTED or START_FAILED is answered when the exec has happened or not, which is later. */
void command_start(connection_serial from, uint64_t id, const struct start_request *request);
void command_feed(connection_serial from, uint64_t id, const struct stdin_request *request);
/* 1 when a process of the command got the signal. */
int command_signal(const struct signal_request *request);
void command_query(connection_serial from, uint64_t id, const char *exec);
/* 1 when the command runs on a terminal, which has the new size now. */
int command_resize(const struct resize_request *request);
/* Answered as a query is. */
void command_window(connection_serial from, uint64_t id, const struct window_request *request);

/* While the clock of commands stands, no time-out of theirs runs: a sandbox that is paused does not use up their time. */
void commands_stop_clock(int stopped);

/* Reaps every child that has ended: leaders end their commands, orphans are only buried. */
void commands_reap(void);
/* Does what is due, announces what changed, forgets what is over. Returns milliseconds until the next time-out, -1 for none. */
int commands_tick(void);

#endif
