/*
 * RECLAIM and PREFETCH: the memory of a frozen sandbox goes to swap, and comes back. @paper §6.3
 *
 * First advice page by page (MADV_PAGEOUT: four times as fast as a control group's own reclaim), then that reclaim for what advice
 * cannot reach: pages that forked processes share, and files in memory. Without swap only what files fill is dropped.
 * What a sandbox may swap is opened here and closed again by `reclaim_end`, whoever froze and whichever launcher thaws it.
 */
#ifndef DSEC_LAUNCHER_RECLAIM_H
#define DSEC_LAUNCHER_RECLAIM_H

#include "server.h"

void reclaim_request(const struct request *request, const char *id);
void prefetch_request(const struct request *request, const char *id);
/* Before a thaw: nothing is taken from it any more, and what it may swap is what its record says. */
void reclaim_end(const char *id);

#endif
