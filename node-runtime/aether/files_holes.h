/* Where the data of a sparse file lies. */
#ifndef AETHER_FILES_HOLES_H
#define AETHER_FILES_HOLES_H

#include <stddef.h>
#include <stdint.h>

struct piece {
	uint64_t offset, length;
};

/* Ascending, not overlapping; all between is a hole. */
struct pieces {
	struct piece *list;
	size_t count, capacity;
};

/* Appends. 0, or -1 with errno: E2BIG beyond SPARSE_PIECES_MAX. */
int pieces_add(struct pieces *pieces, uint64_t offset, uint64_t length);
void pieces_free(struct pieces *pieces);
uint64_t pieces_bytes(const struct pieces *pieces);
/* 1 when they ascend, do not overlap and end within `size`. */
int pieces_are_sound(const struct pieces *pieces, uint64_t size);
/* The data of an open file of `size` bytes. Too many pieces: the last one goes to the end. 0, or -1 with errno. */
int pieces_of(int fd, uint64_t size, struct pieces *pieces);

#endif
