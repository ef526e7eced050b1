/*
 * The sandboxes this launcher answers for: in flight, alive, or dead and not yet destroyed.
 *
 * The truth is in the cgroups and in the records below sandboxes/; this table is rebuilt from them when a launcher starts.
 * INV-SLOT: no two sandboxes share a range of ids.
 */
#ifndef DSEC_LAUNCHER_SANDBOX_H
#define DSEC_LAUNCHER_SANDBOX_H

#include "images.h"
#include "limits.h"
#include "loop.h"
#include "server.h"

#include <sys/types.h>

enum sandbox_phase {
	SANDBOX_DEAD, /* a record or a cgroup, no process */
	SANDBOX_LAUNCHING,
	SANDBOX_LIVE,
	SANDBOX_ENDING,
};

struct waiters {
	struct ticket list[WAITERS_MAX];
	int count;
};

struct sandbox {
	struct sandbox *next; /* of its bucket */
	char id[ID_BYTES];
	enum sandbox_phase phase;
	bool has_slot;
	uint64_t slot;
	struct image *layers[LAYERS_MAX];
	int layer_count;
	pid_t pid;
	uint64_t start_time;   /* field 22 of /proc/<pid>/stat */
	struct watch process;  /* pidfd */
	struct watch channel;  /* to the child, then to Aether, until it is ready */
	struct timer timer;    /* of the launch, or of the next look while ending */
	int64_t give_up_at_ms; /* ending */
	int retry_ms;
	bool bury;             /* ending for good: a tombstone stays */
	struct fault fault;    /* why the launch failed */
	struct waiters launch, destroy;
};

struct sandbox *sandbox_find(const char *id);
/* A new one, DEAD; NULL when the table is full. */
struct sandbox *sandbox_add(const char *id);
/* Takes it out and frees it. Nothing of it may be watched any more. */
void sandbox_drop(struct sandbox *sandbox);
int sandbox_each(int (*visit)(struct sandbox *sandbox, void *context), void *context);
struct sandbox *sandbox_with_slot(uint64_t slot);
/* False when the list is full. */
bool waiters_add(struct waiters *waiters, const struct ticket *ticket);

/* Writes the record and counts the layers' users. */
int sandbox_record(struct sandbox *sandbox, const void *body, size_t length, struct fault *fault);
/* Reads a record, or what a tombstone kept of it. Caller frees. */
char *sandbox_read_record(const char *id, size_t *length);
void sandbox_forget_record(struct sandbox *sandbox);

/* Starts to watch `pid` as the sandbox's first process. */
int sandbox_watch(struct sandbox *sandbox, pid_t pid, int pidfd);
void sandbox_unwatch(struct sandbox *sandbox);
/* What happens when the process of a live sandbox ends: it is dead until it is destroyed. */
void sandbox_on_exit(struct watch *watch, uint32_t events);
/* 0 when the process is gone. */
uint64_t process_start_time(pid_t pid);
/* Rebuilds the table from records and cgroups; removes what nobody owns. */
int sandbox_adopt_all(struct fault *fault);

#endif
