/* The 512-byte blocks of tar archives: fields and checksums. Pure. */
#ifndef AETHER_TAR_BLOCK_H
#define AETHER_TAR_BLOCK_H

#include <stddef.h>
#include <stdint.h>

enum { TAR_BLOCK_BYTES = 512, TAR_NAME_BYTES = 100, TAR_PREFIX_BYTES = 155 };

struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], device_major[8], device_minor[8], prefix[155], padding[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK_BYTES, "a header is one block");

/* Octal text, or a big-endian number behind a set first bit. 0, or -1 when it is neither or negative. */
int tar_get(const char *field, size_t width, uint64_t *out);
/* As tar_get, for times before 1970 too. */
int tar_get_signed(const char *field, size_t width, int64_t *out);
/* Octal. 0, or -1 when it does not fit; then the field says 0. */
int tar_put(char *field, size_t width, uint64_t value);

int tar_checksum_is_right(const struct tar_header *header);
void tar_put_checksum(struct tar_header *header);
int tar_is_zero(const void *bytes, size_t length);
/* Bytes from the end of `size` bytes to the end of their last block. */
size_t tar_padding(uint64_t size);

#endif
