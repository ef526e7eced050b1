/*
 * The end of a sandbox, asked for or because its launch failed: kill, wait for the last process, remove cgroups, socket, storage
 * and record, then answer whoever waits. Every step may be repeated, by a later launcher too.
 */
#ifndef DSEC_LAUNCHER_TEARDOWN_H
#define DSEC_LAUNCHER_TEARDOWN_H

#include "sandbox.h"

void destroy_request(const struct request *request);
/* Ends a launch that failed with sandbox->fault: nothing of it stays, no tombstone either. */
void teardown_failed(struct sandbox *sandbox);

#endif
