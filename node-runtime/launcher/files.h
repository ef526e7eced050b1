/* Small files and directories. Everything returns 0 or a count, or -1 with errno; descriptors are close-on-exec. */
#ifndef DSEC_LAUNCHER_FILES_H
#define DSEC_LAUNCHER_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Closes and sets to -1; keeps errno. */
void close_fd(int *fd);
/* One write to an existing file, as kernel control files want it. */
int write_control(int dir, const char *path, const char *text);
int write_control_number(int dir, const char *path, unsigned long long number);
/* Reads at most size - 1 bytes and ends them with NUL. Returns the count. */
ssize_t read_text(int dir, const char *path, char *out, size_t size);
/* mkdir; a directory that is there already is as good. */
int ensure_dir(int dir, const char *path, mode_t mode);
/* Opens a directory, made when missing. */
int open_dir(int dir, const char *path, mode_t mode);
/* Replaces a file in one step: a reader sees the old or the new text. The aside name is `.<name>`. */
int replace_file(int dir, const char *name, const void *bytes, size_t length);
bool file_exists(int dir, const char *name);
/* Calls back for every name except . and ..; stops at the first nonzero answer and returns it. */
int each_name(int dir, int (*visit)(const char *name, void *context), void *context);

#endif
