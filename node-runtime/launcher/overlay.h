/*
 * The root file system of a sandbox: an overlay over idmapped clones of the images, made in the initial user namespace so that
 * deletions are `trusted.*` marks which the sandbox cannot forge, with a plain upper in the sandbox's id range. @paper §5.1
 */
#ifndef DSEC_LAUNCHER_OVERLAY_H
#define DSEC_LAUNCHER_OVERLAY_H

#include "fault.h"
#include "images.h"
#include "storage.h"

/* A detached mount, or -1. `images`: lowest first. `userns`: maps the image's ids to the sandbox's range. */
int overlay_make(struct image *const *images, int count, const struct storage *storage, int userns, struct fault *fault);

#endif
