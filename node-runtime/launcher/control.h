/* The requests, one function each. */
#ifndef DSEC_LAUNCHER_CONTROL_H
#define DSEC_LAUNCHER_CONTROL_H

#include "server.h"

void control_hello(const struct request *request);
/* False when there is no such request. Every request is answered once, now or when its work is done. */
bool control_handle(uint16_t type, const struct request *request);

#endif
