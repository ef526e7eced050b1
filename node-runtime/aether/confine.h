/* What PID 1 gives up once, and every command inherits: capabilities outside Docker's default set, signal dispositions. */
#ifndef AETHER_CONFINE_H
#define AETHER_CONFINE_H

/* 1 when a command's root may hold this capability. */
int confine_keeps(int capability);
/* Empties the bounding set but for what commands may have, and the inheritable and ambient sets. 0, or -1 with errno. */
int confine_capabilities(void);
/* The rest for a process that goes on without an exec, where the bounding set would do it: it keeps what a command may have. */
int confine_process(void);
/* Default dispositions, everything blocked: signals are read from a descriptor, and a broken pipe is only an errno. 0, or -1. */
int confine_signals(void);

#endif
