/* Connects the Edge to a server inside the sandbox: a port of the loopback, or a unix socket. */
#ifndef AETHER_DIAL_H
#define AETHER_DIAL_H

#include "request.h"

#include <stdint.h>

/* Takes `edge_fd` over. DIALED is sent there once it is known; after success it carries the server's bytes. */
void dial_start(int edge_fd, uint64_t id, const struct dial_request *request);
/* Gives up what has taken too long. Returns milliseconds until the next end, -1 for none. */
int dials_tick(void);

#endif
