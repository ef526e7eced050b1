/*
 * Writes the image: what the tree says, over the data files that it uses. Same tree, same devices, same bytes.
 * Directories and links lie in the image itself; no byte of a file does.
 */
#ifndef DSEC_PACKER_IMAGE_H
#define DSEC_PACKER_IMAGE_H

#include "tree.h"

/* `uuid`: 16 bytes that tell images of equal trees over different layers apart. */
/* `digest`: of the whole image, 64 hexadecimal digits. */
void image_write(const char *file, struct inode *root, const uint8_t uuid[16], char digest[65]);

#endif
