/* From argv[0] to a running program, by the PATH of the command's own environment. */
#ifndef AETHER_LOOKUP_H
#define AETHER_LOOKUP_H

#include "wire.h"

#include <stddef.h>

/* The value of `name` in `envp`, or NULL. */
const char *env_get(char *const *envp, const char *name);
/* Joins the next directory of a PATH and `file`. The rest of the path, or NULL at its end; `out` is empty when it did not fit. */
const char *lookup_next(const char *path, const char *file, char *out, size_t room);
/* Replaces this process. Returns only when it cannot: why, with errno. */
enum start_failure lookup_exec(char *const *argv, char *const *envp);

#endif
