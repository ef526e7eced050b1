/* Which function answers which frame. */
#ifndef AETHER_DISPATCH_H
#define AETHER_DISPATCH_H

#include "connection.h"
#include "frame.h"

/* 0, or -1 when the frame is malformed: the connection is told so and closed. */
int dispatch_frame(connection_serial from, const struct frame_header *header, const uint8_t *body);

#endif
