/*
 * Files of the sandbox, for the Edge: a connection that asks for them is handed to a worker, a child of PID 1 in the place and
 * with the rights of a command of the named user, but without a program of its own. It sees what that user sees and can do no
 * more; as it was never executed, nobody inside may read or trace it. It lives as long as its connection. @paper §3.3
 */
#ifndef AETHER_FILES_WORKER_H
#define AETHER_FILES_WORKER_H

#include <stdint.h>

/* Starts the worker, which answers READY or FAILED to request `id`; when there can be none, FAILED is answered here. */
void files_start(int connection_fd, uint64_t id, const char *user);

#endif
