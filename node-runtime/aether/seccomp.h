/*
 * The system calls a command may make: the allow-list of Docker's default profile for a container without extra
 * capabilities, as a search tree over runs of numbers. Refused calls fail with EPERM; clone3 and numbers newer than this
 * list fail with ENOSYS, so that C libraries fall back. Other instruction sets (32-bit programs) are killed.
 */
#ifndef AETHER_SECCOMP_H
#define AETHER_SECCOMP_H

#include <linux/filter.h>
#include <stddef.h>

enum { SECCOMP_PROGRAM_MAX = 512 };

/* Writes the program. Its length. */
size_t seccomp_build(struct sock_filter program[SECCOMP_PROGRAM_MAX]);
/* Builds once; later calls of seccomp_apply, also in children, use the result. */
void seccomp_init(void);
/* Filters the calling process and all that come from it; needs CAP_SYS_ADMIN, as no_new_privs stays off. 0, or -1. */
int seccomp_apply(void);

#endif
