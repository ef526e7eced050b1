#include "files_sparse.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* What a file system gives and takes at least. */
enum { BLOCK_BYTES = 4096, COPY_BYTES = 64 * 1024 };

void sparse_begin(struct sparse_writer *writer, int fd, int sparse)
{
	*writer = (struct sparse_writer){.fd = fd, .sparse = sparse};
}

static int write_all(struct sparse_writer *writer, const uint8_t *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(writer->fd, bytes, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			errno = written == 0 ? EIO : errno;
			return -1;
		}
		writer->written += (uint64_t)written;
		bytes += written;
		length -= (size_t)written;
	}
	return 0;
}

static int all_zero(const uint8_t *bytes, size_t length)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

void sparse_skip(struct sparse_writer *writer, uint64_t length)
{
	writer->size += length;
	writer->hole |= length > 0;
}

static int put(struct sparse_writer *writer, const uint8_t *bytes, size_t length)
{
	if (writer->hole && lseek(writer->fd, (off_t)writer->size, SEEK_SET) < 0)
		return -1;
	writer->hole = 0;
	writer->size += length;
	return write_all(writer, bytes, length);
}

/* Bytes up to the next whole block, or all. */
static size_t block_of(const struct sparse_writer *writer, size_t length)
{
	size_t block = BLOCK_BYTES - writer->size % BLOCK_BYTES;
	return block < length ? block : length;
}

int sparse_write(struct sparse_writer *writer, const uint8_t *bytes, size_t length)
{
	if (!writer->sparse)
		return put(writer, bytes, length);
	while (length > 0) {
		size_t zeros = 0, data = 0, block;
		while (zeros < length && all_zero(bytes + zeros, block = block_of(writer, length - zeros))) {
			sparse_skip(writer, block);
			zeros += block;
		}
		bytes += zeros;
		length -= zeros;
		struct sparse_writer ahead = *writer; /* how far data goes, without moving */
		while (data < length && !all_zero(bytes + data, block = block_of(&ahead, length - data))) {
			ahead.size += block;
			data += block;
		}
		if (data > 0 && put(writer, bytes, data) < 0)
			return -1;
		bytes += data;
		length -= data;
	}
	return 0;
}

int sparse_end(struct sparse_writer *writer)
{
	return writer->hole ? ftruncate(writer->fd, (off_t)writer->size) : 0;
}

int copy_bytes(int source, int target, off_t from, off_t to)
{
	uint8_t buffer[COPY_BYTES];
	while (from < to) {
		size_t wanted = to - from < COPY_BYTES ? (size_t)(to - from) : COPY_BYTES;
		ssize_t got = pread(source, buffer, wanted, from);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0 ? 0 : -1;
		for (ssize_t done = 0; done < got;) {
			ssize_t written = pwrite(target, buffer + done, (size_t)(got - done), from + done);
			if (written < 0 && errno == EINTR)
				continue;
			if (written <= 0)
				return -1;
			done += written;
		}
		from += got;
	}
	return 0;
}
