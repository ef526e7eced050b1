/* The epoll loop: one thread, level-triggered, and nothing a handler frees vanishes before its turn is over. */
#ifndef AETHER_LOOP_H
#define AETHER_LOOP_H

#include <stdint.h>

/* A watched descriptor, embedded in its owner. `fd` is -1 when nothing is watched. */
struct source {
	int fd;
	uint32_t events; /* 0: open but not watched */
	void (*ready)(struct source *source, uint32_t events);
};

/* First member of what may be freed while events for it are still in hand. */
struct grave {
	struct grave *next;
};

int loop_open(void);
/* Watches `source->fd` for `events`; 0 keeps it open unwatched. 0, or -1 with errno. */
int loop_watch(struct source *source, uint32_t events);
/* Stops watching and closes. Explicit removal matters: a child between fork and exec keeps the open file alive. */
void loop_close(struct source *source);
/* Frees at the end of this turn. */
void loop_bury(struct grave *grave);
/* Waits at most `timeout_ms` (-1: for ever), then calls the handlers of what is ready. */
void loop_turn(int timeout_ms);
/* Ends a turn: frees what was buried. */
void loop_settle(void);

int64_t monotonic_ms(void);
uint64_t wall_ms(void);

#endif
