/*
 * EROFS images: each digest is mounted once, read-only, in the launcher's mount namespace, and shared by every overlay above it.
 *
 * The kernel could mount it file-backed (6.12 and later, and not from every file system); a loop device does it elsewhere.
 * INV-MOUNT: an image with users is not unmounted.
 */
#ifndef DSEC_LAUNCHER_IMAGES_H
#define DSEC_LAUNCHER_IMAGES_H

#include "fault.h"

#include <stdbool.h>

struct image {
	struct image *next;
	char digest[7 + 64 + 1];
	bool mounted; /* false: sandboxes use it, but it has not been mounted again since the last launcher's namespace went */
	int users;
};

/* Learns what a former launcher left mounted in this namespace. */
int images_adopt(struct fault *fault);
/* `files`: the image, then the data files that it stands on, in the order of its own table; `count` of them in all. */
int images_mount(const char *digest, char *const *files, int count, struct fault *fault);
int images_unmount(const char *digest, struct fault *fault);
/* Unmounts all of it, in use or not; overlays keep what they stand on. */
void images_close(void);
/* A mounted one. */
struct image *images_find(const char *digest);
/* Counts a user of the image, mounted or not; NULL without memory. */
struct image *images_hold(const char *digest);
void images_release(struct image *image);
/* The first; the rest by `next`. */
const struct image *images_first(void);
/* Name of the mount point below layers/. */
const char *image_name(const struct image *image);
/* `file` or `loop`: what the newest mount took, or what this kernel should be able to. */
const char *images_method(void);

#endif
