/*
 * Connections of Edges, and who is owed an answer.
 *
 * INV-EPOCH: requests are taken only from connections that said HELLO with the highest epoch seen, also by a former launcher.
 */
#ifndef DSEC_LAUNCHER_SERVER_H
#define DSEC_LAUNCHER_SERVER_H

#include "fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum request_type {
	REQUEST_HELLO = 1,
	REQUEST_MOUNT_IMAGE,
	REQUEST_UMOUNT_IMAGE,
	REQUEST_LIST_IMAGES,
	REQUEST_LAUNCH,
	REQUEST_DESTROY,
	REQUEST_FREEZE,
	REQUEST_THAW,
	REQUEST_STATS,
	REQUEST_LIST,
	REQUEST_FORGET,
	REQUEST_QUIT,
	REQUEST_RECLAIM,
	REQUEST_PREFETCH,
	REQUEST_SWAP_ON,
	REQUEST_SWAP_OFF,
	ANSWER_OK = 64,
	ANSWER_ERROR = 65,
};

/* Whom to answer. Stays harmless after the connection is gone: nobody gets somebody else's answer. */
struct ticket {
	int connection;
	uint64_t generation;
	uint64_t request;
};

/* A growing list of `key=value` strings. */
struct body {
	char *bytes;
	size_t length, capacity;
	bool failed;
};

struct request {
	struct ticket ticket;
	const void *body;
	size_t length;
};

void body_add(struct body *body, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
void body_free(struct body *body);

/* Sends OK and frees the body; NULL sends an empty one. */
void answer_ok(const struct ticket *ticket, struct body *body);
void answer_fault(const struct ticket *ticket, const struct fault *fault);

int server_open(struct fault *fault);
void server_stop_listening(void);
/* Ends the connections, which tells their Edges that the launcher has gone. */
void server_close(void);
/* In a worker: its copies of the connections are closed, so that the launcher's ends are their ends. */
void server_abandon(void);

#endif
