/*
 * A terminal of the sandbox's own devpts. Our end is one descriptor for both directions: what the command and its children
 * print is one stream, and bytes written are typed.
 */
#ifndef AETHER_TERMINAL_H
#define AETHER_TERMINAL_H

#include <stdint.h>

struct terminal {
	int master, slave;
};

/* Both close-on-exec, the master non-blocking. 0, or -1 with errno and nothing open. */
int terminal_open(struct terminal *terminal, uint16_t rows, uint16_t columns);
/* In the command's process, a session leader by now: makes its standard input the controlling terminal. 0, or -1 with errno. */
int terminal_take(void);

#endif
