/*
 * Connections of Edges. Answers go to the connection that asked, unasked frames to the newest one that has asked anything here. Nothing here waits for
 * a reader: what does not fit is kept up to a limit, and a reader that stays away is asked for no more requests.
 */
#ifndef AETHER_CONNECTION_H
#define AETHER_CONNECTION_H

#include <stddef.h>
#include <stdint.h>

/* Names a connection for as long as the process lives; 0 names none. */
typedef uint32_t connection_serial;

/* Listens on an already bound, listening socket. 0, or -1 with errno. */
int connections_open(int listener_fd);
/* An answer to request `id`. A connection that is gone is no error: its Edge asks again. */
void connection_answer(connection_serial to, uint16_t type, uint64_t id, const void *body, size_t length);
int connection_alive(connection_serial serial);
/* The socket, for a child that takes it over; -1 when it is gone. */
int connection_socket(connection_serial serial);
/* Closes this process's end of it, with whatever was not sent yet. */
void connection_leave(connection_serial serial);
/* 1: taken. 0: no room now, offer it again after the next turn. -1: no Edge is connected. */
int connections_announce(uint16_t type, const void *body, size_t length);
/* Sends what was answered during this turn: one write for all of it. 1 when requests were left for the next turn, which must not sleep. */
int connections_flush(void);

#endif
