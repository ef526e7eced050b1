/* Names below a hierarchy, for the files that implement cgroup.h. */
#ifndef DSEC_LAUNCHER_CGROUP_PATHS_H
#define DSEC_LAUNCHER_CGROUP_PATHS_H

#include "cgroup.h"

#include <stddef.h>
#include <stdio.h>

struct cgroup_path {
	char text[ID_BYTES + 64];
};

static inline const char *below(struct cgroup_path *path, const char *id, const char *rest)
{
	snprintf(path->text, sizeof path->text, "%s/%s", id, rest);
	return path->text;
}

/* A file of the sandbox's payload in one hierarchy. */
static inline const char *payload(struct cgroup_path *path, const struct hierarchy *hierarchy, const char *id, const char *rest)
{
	snprintf(path->text, sizeof path->text, hierarchy->flat ? "%s/%s" : "%s/payload/%s", id, rest);
	return path->text;
}

static inline const struct hierarchy *with_controller(const struct cgroup_tree *tree, unsigned controller)
{
	for (int i = 0; i < tree->count; i++)
		if (tree->list[i].controllers & controller)
			return &tree->list[i];
	return NULL;
}

static inline const struct hierarchy *unified_of(const struct cgroup_tree *tree)
{
	return tree->list[0].unified ? &tree->list[0] : NULL;
}

static inline const struct hierarchy *primary(const struct cgroup_tree *tree)
{
	return &tree->list[0];
}

/* Of cgroup_allow_swap, while the v1 directories are being made. */
int cgroup_allow_swap_in(const struct hierarchy *memory, const char *id, bool paused, uint64_t swap_mib);

#endif
