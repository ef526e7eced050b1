/* FREEZE and THAW of the commands; Aether itself goes on, so that its deadline holds. Answers when the kernel has done it. */
#ifndef DSEC_LAUNCHER_FREEZE_H
#define DSEC_LAUNCHER_FREEZE_H

#include "server.h"

void freeze_request(const struct request *request, const char *id, bool frozen);

#endif
