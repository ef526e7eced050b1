/*
 * Who a command runs as, out of the sandbox's own /etc/passwd and /etc/group. Read by the command's own process, never by
 * PID 1: the files belong to the sandbox and may hold anything.
 */
#ifndef AETHER_IDENTITY_H
#define AETHER_IDENTITY_H

#include "limits.h"

#include <stddef.h>
#include <sys/types.h>

struct identity {
	uid_t uid;
	gid_t gid;
	gid_t groups[IDENTITY_GROUPS_MAX]; /* supplementary, the main group first */
	size_t group_count;
	char name[IDENTITY_NAME_BYTES]; /* empty when the uid has no entry */
	char home[IDENTITY_HOME_BYTES]; /* "/" when there is none */
};

/* `user`: a name, a uid, or uid:gid. 0, or -1 when no such name exists or a number is out of range. */
int identity_resolve(const char *user, const char *passwd_path, const char *group_path, struct identity *out);

#endif
