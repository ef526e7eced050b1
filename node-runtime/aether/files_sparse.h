/* Bytes into files: whole writes, holes where there is nothing but zeros, copies that keep holes. */
#ifndef AETHER_FILES_SPARSE_H
#define AETHER_FILES_SPARSE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sparse_writer {
	int fd;
	int sparse;
	uint64_t size; /* bytes given so far */
	int hole;      /* the last of them were left out */
	uint64_t written; /* bytes that the kernel took, also of a write that failed in the middle */
};

/* `sparse`: blocks of zeros become holes; only for a file that is new. */
void sparse_begin(struct sparse_writer *writer, int fd, int sparse);
/* 0, or -1 with errno. */
int sparse_write(struct sparse_writer *writer, const uint8_t *bytes, size_t length);
/* Leaves a hole of this length. */
void sparse_skip(struct sparse_writer *writer, uint64_t length);
/* Gives the file its length when it ends with a hole. 0, or -1 with errno. */
int sparse_end(struct sparse_writer *writer);

/* Copies [from, to) of one file into the same place of another. 0, or -1 with errno. */
int copy_bytes(int source, int target, off_t from, off_t to);

#endif
