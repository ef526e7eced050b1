/*
 * Work that may take seconds, each in a process of its own, so that the loop goes on with launches meanwhile.
 *
 * A worker is a fork: it sees what the launcher knew, answers with numbers, and dies with the launcher. Nothing depends on it having
 * finished: who asked asks again. No threads in the launcher itself: a child that was cloned beside one could find a lock held for ever.
 */
#ifndef DSEC_LAUNCHER_JOB_H
#define DSEC_LAUNCHER_JOB_H

#include "fault.h"
#include "limits.h"
#include "server.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOB_NUMBERS = 6 };

/* Crosses a pipe as it lies in memory: worker and launcher are one program at the same addresses, so even the texts of a fault are. */
struct job_outcome {
	bool failed;
	struct fault fault;
	uint64_t numbers[JOB_NUMBERS];
	char text[64];
};

struct job_order {
	struct ticket ticket;
	/* The sandbox it is about; empty: the node. */
	char id[ID_BYTES];
	uint64_t argument;
	char text[64];
	/* In the worker. */
	void (*work)(const struct job_order *order, struct job_outcome *outcome);
	/* In the launcher, when the worker has ended. */
	void (*answer)(const struct job_order *order, const struct job_outcome *outcome);
	int timeout_seconds;
};

/* Starts it, or lets it wait for a worker to end. -1: too many wait already. */
int job_submit(const struct job_order *order, struct fault *fault);
/* Ends what is being done or waits for this sandbox; who asked is told so. */
void jobs_cancel(const char *id);

#endif
