/* /tmp, and the files in /etc that say who the sandbox is. 0, or -1 with errno. */
#ifndef DSEC_LAUNCHER_NAMES_H
#define DSEC_LAUNCHER_NAMES_H

#include <stddef.h>

int make_tmp(int root);
/* Lays a file with this text over an open mount point. `dev`: a mounted tmpfs, where it lives without a name. */
int lay_text(int dev, int point, const char *name, const char *text, size_t length);
int mount_names(int root, int dev, const char *hostname);

#endif
