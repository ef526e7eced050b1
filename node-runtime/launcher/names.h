/* /tmp, and the files in /etc that say who the sandbox is. 0, or -1 with errno. */
#ifndef DSEC_LAUNCHER_NAMES_H
#define DSEC_LAUNCHER_NAMES_H

int make_tmp(int root);
/* `dev`: a mounted tmpfs, where the files live without names. */
int mount_names(int root, int dev, const char *hostname);

#endif
