/*
 * Tombstones: which sandboxes must not come back. A late or repeated LAUNCH finds the mark of the DESTROY before it.
 *
 * INV-TOMB: an id with a tombstone is never launched. They are forgotten on request, or when they are old.
 */
#ifndef DSEC_LAUNCHER_TOMBS_H
#define DSEC_LAUNCHER_TOMBS_H

#include "fault.h"

#include <stdbool.h>

bool tomb_exists(const char *id);
int tomb_make(const char *id, struct fault *fault);
int tomb_remove(const char *id, struct fault *fault);
void tombs_expire(void);

#endif
