/* What a LAUNCH asks for, taken from its frame and checked. */
#ifndef DSEC_LAUNCHER_SPEC_H
#define DSEC_LAUNCHER_SPEC_H

#include "cgroup.h"
#include "fault.h"
#include "limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Strings point into the frame's body. */
struct launch_spec {
	const char *id, *hostname;
	const char *upper, *work, *exec_dir, *socket;
	const char *disk, *disk_template; /* NULL: upper and work lie on the node's own disk */
	const char *layers[LAYERS_MAX]; /* digests, lowest first */
	int layer_count;
	uint64_t slot, life_seconds;
	struct cgroup_limits limits;
};

/* `sb-` and then lower-case letters, digits, `_` and `-`: safe as a file name and as the name of a cgroup. */
bool is_sandbox_id(const char *text);
/* `sha256:` and 64 hex digits. */
bool is_digest(const char *text);
/* Absolute, without `..`, and short enough. */
bool is_host_path(const char *text, size_t max_bytes);

int spec_parse(struct launch_spec *spec, const void *body, size_t length, struct fault *fault);
/* First host id of the sandbox's range: its root. */
static inline uid_t spec_owner(uint64_t slot)
{
	return (uid_t)(ID_RANGE_FIRST + slot * ID_RANGE_SIZE);
}

#endif
