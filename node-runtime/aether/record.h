/* Exit records: what is left of a command when Aether has forgotten it. Written aside, then renamed into place. */
#ifndef AETHER_RECORD_H
#define AETHER_RECORD_H

#include "wire.h"

/* 0, or -1 with errno; nothing half-written is ever seen under the record's name. */
int record_write(int directory, const struct exit_body *body);
/* 0, or -1 when there is no whole record of `exec`. */
int record_read(int directory, const char *exec, struct exit_body *body);

#endif
