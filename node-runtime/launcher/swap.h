/*
 * The node's own swap for paused sandboxes: one zram device, which is made once and removed at the node's clean end.
 *
 * Ours is the one whose swap header carries our label; no other swap area is ever touched (INV-SWAP-OWN). So a launcher that died at any point
 * has left either nothing, an empty device (which takes no memory, and whose number is written down before it is filled), or ours.
 */
#ifndef DSEC_LAUNCHER_SWAP_H
#define DSEC_LAUNCHER_SWAP_H

#include "server.h"

#include <stdint.h>

struct swap_usage {
	uint64_t stored_bytes; /* of pages that lie in it */
	uint64_t taken_bytes;  /* of memory for them */
};

void swap_on_request(const struct request *request);
void swap_off_request(const struct request *request);
/* Of our device. -1 when there is none. */
int swap_read_usage(struct swap_usage *usage);

#endif
