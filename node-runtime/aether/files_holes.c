#include "files_holes.h"

#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECES_FIRST = 16 };

int pieces_add(struct pieces *pieces, uint64_t offset, uint64_t length)
{
	if (pieces->count >= SPARSE_PIECES_MAX) {
		errno = E2BIG;
		return -1;
	}
	if (pieces->count == pieces->capacity) {
		size_t capacity = pieces->capacity ? 2 * pieces->capacity : PIECES_FIRST;
		struct piece *grown = realloc(pieces->list, capacity * sizeof *grown);
		if (!grown)
			return -1;
		pieces->list = grown;
		pieces->capacity = capacity;
	}
	pieces->list[pieces->count++] = (struct piece){offset, length};
	return 0;
}

void pieces_free(struct pieces *pieces)
{
	free(pieces->list);
	*pieces = (struct pieces){0};
}

uint64_t pieces_bytes(const struct pieces *pieces)
{
	uint64_t bytes = 0;
	for (size_t at = 0; at < pieces->count; at++)
		bytes += pieces->list[at].length;
	return bytes;
}

int pieces_are_sound(const struct pieces *pieces, uint64_t size)
{
	uint64_t end = 0;
	for (size_t at = 0; at < pieces->count; at++) {
		const struct piece *piece = &pieces->list[at];
		if (piece->offset < end || piece->offset > size || piece->length > size - piece->offset)
			return 0;
		end = piece->offset + piece->length;
	}
	return 1;
}

int pieces_of(int fd, uint64_t size, struct pieces *pieces)
{
	for (off_t end = 0; (uint64_t)end < size;) {
		off_t data = lseek(fd, end, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? 0 : -1; /* nothing but a hole up to the end */
		end = lseek(fd, data, SEEK_HOLE);
		if (end < 0)
			return -1;
		if ((uint64_t)data >= size)
			return 0;
		uint64_t to = (uint64_t)end < size && pieces->count + 1 < SPARSE_PIECES_MAX ? (uint64_t)end : size;
		if (pieces_add(pieces, (uint64_t)data, to - (uint64_t)data) < 0)
			return -1;
		if (to == size)
			return 0;
	}
	return 0;
}
