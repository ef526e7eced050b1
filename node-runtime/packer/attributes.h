/*
 * Extended attributes of one file, as they go into the image.
 *
 * Kept: user, security, ACLs, and of the overlay's own marks those that mean something in a layer (opaque, redirect). Dropped: marks
 * that only an upper has and that change nothing below (origin, impure, uuid, nlink). Ids in ACLs and capabilities become the
 * sandbox's own. Anything else is refused by name, never changed.
 */
#ifndef DSEC_PACKER_ATTRIBUTES_H
#define DSEC_PACKER_ATTRIBUTES_H

#include <stddef.h>
#include <stdint.h>

struct attributes {
	uint8_t *bytes; /* header and entries, as EROFS has them; NULL when there are none */
	uint32_t length;
};

/* `real` is a path to the file itself, never followed; `shown` is what a refusal calls it. */
struct attributes attributes_read(const char *real, const char *shown, uint32_t first_id);

#endif
