/* LAUNCH, from the request to Aether's ready. Everything up to the go-ahead happens at once; the wait for ready does not block. */
#ifndef DSEC_LAUNCHER_LAUNCH_H
#define DSEC_LAUNCHER_LAUNCH_H

#include "server.h"

void launch_request(const struct request *request);

#endif
