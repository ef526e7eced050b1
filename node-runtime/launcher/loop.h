/* The event loop: one thread, epoll for descriptors, a short list of timers. */
#ifndef DSEC_LAUNCHER_LOOP_H
#define DSEC_LAUNCHER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* Embedded in whatever waits for a descriptor. A handler may free its own object: events are taken one at a time. */
struct watch {
	int fd; /* -1: not watched */
	void (*ready)(struct watch *watch, uint32_t events);
};

struct timer {
	struct timer *next;
	bool armed;
	int64_t at_ms;
	void (*due)(struct timer *timer);
};

#define OWNER_OF(member_pointer, type, member) ((type *)((char *)(member_pointer) - offsetof(type, member)))

int loop_open(void);
/* Watches for reading. Takes over the descriptor; -1 with errno leaves it to the caller. */
int loop_watch(struct watch *watch, int fd, void (*ready)(struct watch *, uint32_t));
/* Stops watching and closes. */
void loop_close(struct watch *watch);
void loop_set_timer(struct timer *timer, int64_t in_ms, void (*due)(struct timer *));
void loop_clear_timer(struct timer *timer);
int64_t loop_now_ms(void);
/* Handles one event or all due timers. 0, or -1 with errno. */
int loop_turn(void);

#endif
