/*
 * Where the bytes of files go: a data file of the new image, and the data files of earlier images, whose chunks are used again.
 *
 * A data file holds chunks at block boundaries, then a table of them (hash, block, length), then a footer. The hash only finds
 * candidates: a chunk is used again after its bytes were compared, never on the word of a hash.
 */
#ifndef DSEC_PACKER_DATA_H
#define DSEC_PACKER_DATA_H

#include <stdbool.h>
#include <stdint.h>

struct chunk_at {
	uint16_t device; /* in the order in which data files were added; the new one is the last */
	uint32_t block;  /* EROFS_HOLE: nothing but zeros */
};

struct data_counts {
	uint64_t stored_bytes, shared_bytes;
	uint64_t cloned_bytes; /* of the shared ones: in the new data file, on blocks of the upper */
};

/* An earlier data file. `tag`: its digest, 64 hexadecimal digits. One that cannot be read is left out. */
void data_add_earlier(const char *path, const char *tag);
/* The new data file, made and emptied. After it no earlier ones can be added. */
void data_create(const char *path);
struct chunk_at data_put(const uint8_t *bytes, uint32_t length);
/* From now on data_clone may share blocks; without this it never does. */
void data_may_clone(void);
/*
 * Puts whole blocks of an open file into the data file without reading or writing them: the file system shares them. False, for ever,
 * when it cannot; then nothing has happened. Otherwise the first block.
 */
bool data_clone(int file, uint64_t at, uint64_t length, uint32_t *block);
/* Where a block of the new data file is. */
struct chunk_at data_at(uint32_t block);
/* The block that follows what was cloned last; `length` is less than a block. */
void data_append_tail(const uint8_t *bytes, uint32_t length);
/* Writes what is left, the table and the footer. */
struct data_counts data_finish(void);

int data_device_count(void);
/* Tag and blocks of a device. */
const char *data_tag(int device);
uint32_t data_blocks(int device);
/* After data_finish: gives the new data file its tag, which is its digest. The sandbox need not rest for it. */
void data_name_new(void);
/* That digest; NULL when nothing new was stored, and the file is of no use. */
const char *data_name(void);

#endif
