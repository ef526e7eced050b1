/*
 * The writable disk of a sandbox that has a disk limit: a sparse ext4 image of that size, copied from an empty template, on a loop
 * device. The kernel says ENOSPC when it is full, in bytes and in inodes, and df tells the truth.
 *
 * It is mounted nowhere: the overlay above it is all that holds it. So it goes with the sandbox's last process, whoever else has
 * died, and a launcher killed at any point leaves neither mount nor device behind.
 * INV-DISK: an image is never mounted twice. Its lock goes with the loop device.
 */
#ifndef DSEC_LAUNCHER_DISK_H
#define DSEC_LAUNCHER_DISK_H

#include "fault.h"
#include "spec.h"

/* The image, made when missing, as a detached mount; -1. */
int disk_open(const struct launch_spec *spec, struct fault *fault);

#endif
