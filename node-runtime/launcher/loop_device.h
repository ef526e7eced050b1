/* A loop device over an open file. It frees itself when its last user, mount or descriptor, is gone: also when this process dies. */
#ifndef DSEC_LAUNCHER_LOOP_DEVICE_H
#define DSEC_LAUNCHER_LOOP_DEVICE_H

#include <stddef.h>

enum loop_device_kind {
	LOOP_DEVICE_READ_ONLY,
	LOOP_DEVICE_WRITABLE, /* past the page cache where the file's disk allows it: what is written is cached above the device already */
};

/* The device's descriptor, and its path; -1 with errno. */
int loop_device_take(int file, enum loop_device_kind kind, char *path, size_t size);
/* Remembers which devices there are; removes idle ones that have come since. */
void loop_devices_note(void);
void loop_devices_tidy(void);

#endif
