/*
 * Tombstones: which sandboxes must not come back. A late or repeated LAUNCH finds the mark of the DESTROY before it.
 *
 * A sandbox's record becomes its tombstone by a rename, which takes no space on a full disk, and keeps saying where its files
 * are until they are gone.
 *
 * INV-TOMB: an id with a tombstone is never launched. They are forgotten on request, or when they are old.
 */
#ifndef DSEC_LAUNCHER_TOMBS_H
#define DSEC_LAUNCHER_TOMBS_H

#include "fault.h"

#include <stdbool.h>

bool tomb_exists(const char *id);
int tomb_make(const char *id, struct fault *fault);
/* Its files are gone: the mark alone stays. */
void tomb_settle(const char *id);
int tomb_remove(const char *id, struct fault *fault);
void tombs_expire(void);

#endif
