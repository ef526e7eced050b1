/*
 * Bytes between the Edge and a server inside, in both directions and half-closed as the ends are. What one end does not take
 * yet lies in a pipe, one per direction, and the other end is not read meanwhile: nothing is copied here, and nothing grows.
 */
#ifndef AETHER_RELAY_H
#define AETHER_RELAY_H

/* Takes both descriptors over. 0, or -1 with errno: then they are still the caller's. */
int relay_start(int edge_fd, int inside_fd);
/* 1 when there are as many relays as are served at once. */
int relay_is_full(void);
/* Ends relays whose Edge has gone unnoticed. Returns milliseconds until the next look, -1 for none. */
int relays_tick(void);

#endif
