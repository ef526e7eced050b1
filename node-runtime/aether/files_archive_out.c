#include "files_archive_out.h"

#include "tar_block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest line pair of a sparse map: two numbers of 20 digits. */
enum { MAP_LINE_BYTES = 2 * 21 };

static const uint8_t zeros[2 * TAR_BLOCK_BYTES];

struct map {
	char *text;
	size_t length;
};

/* The map of a sparse file as text, padded to whole blocks. 0, or -1 without memory. */
static int make_map(const struct pieces *pieces, struct map *map)
{
	size_t room = (pieces->count + 1) * MAP_LINE_BYTES + TAR_BLOCK_BYTES;
	map->text = calloc(1, room);
	if (!map->text)
		return -1;
	map->length = (size_t)snprintf(map->text, room, "%zu\n", pieces->count);
	for (size_t at = 0; at < pieces->count; at++)
		map->length += (size_t)snprintf(map->text + map->length, room - map->length, "%llu\n%llu\n", (unsigned long long)pieces->list[at].offset,
						(unsigned long long)pieces->list[at].length);
	map->length += tar_padding(map->length);
	return 0;
}

static void put_text(char *field, size_t room, const char *text)
{
	size_t length = strlen(text);
	memcpy(field, text, length < room ? length : room);
}

/* What the plain header cannot say goes into the extended one. */
static void put_number(struct entry_out *entry, char *field, size_t width, const char *key, uint64_t value)
{
	if (tar_put(field, width, value) < 0)
		pax_add_number(entry->extended, key, value);
}

static void put_names(struct entry_out *entry, struct tar_header *header)
{
	if (entry->pieces) {
		pax_add(entry->extended, "", "GNU.sparse.name", entry->path, strlen(entry->path));
		put_text(header->name, TAR_NAME_BYTES, "GNUSparseFile.0/entry");
	} else {
		if (strlen(entry->path) > TAR_NAME_BYTES)
			pax_add(entry->extended, "", "path", entry->path, strlen(entry->path));
		put_text(header->name, TAR_NAME_BYTES, entry->path);
	}
	if (!entry->link)
		return;
	if (strlen(entry->link) > TAR_NAME_BYTES)
		pax_add(entry->extended, "", "linkpath", entry->link, strlen(entry->link));
	put_text(header->link, TAR_NAME_BYTES, entry->link);
}

static void put_time(struct entry_out *entry, struct tar_header *header)
{
	const struct timespec *time = &entry->status->st_mtim;
	int plain = time->tv_sec >= 0 && tar_put(header->mtime, sizeof header->mtime, (uint64_t)time->tv_sec) == 0;
	if (!plain)
		(void)tar_put(header->mtime, sizeof header->mtime, 0);
	if (!plain || time->tv_nsec != 0)
		pax_add_time(entry->extended, "mtime", time->tv_sec, (uint32_t)time->tv_nsec);
}

static void put_sparse_records(struct entry_out *entry)
{
	pax_add_number(entry->extended, "GNU.sparse.major", 1);
	pax_add_number(entry->extended, "GNU.sparse.minor", 0);
	pax_add_number(entry->extended, "GNU.sparse.realsize", (uint64_t)entry->status->st_size);
}

static void fill_header(struct entry_out *entry, struct tar_header *header, uint64_t size)
{
	*header = (struct tar_header){.type = entry->type, .magic = "ustar", .version = {'0', '0'}};
	if (entry->pieces)
		put_sparse_records(entry);
	put_names(entry, header);
	put_time(entry, header);
	put_number(entry, header->size, sizeof header->size, "size", size);
	put_number(entry, header->uid, sizeof header->uid, "uid", entry->status->st_uid);
	put_number(entry, header->gid, sizeof header->gid, "gid", entry->status->st_gid);
	(void)tar_put(header->mode, sizeof header->mode, entry->status->st_mode & 07777);
	tar_put_checksum(header);
}

enum channel_result archive_put_padding(uint64_t size)
{
	return stream_write(zeros, tar_padding(size));
}

static enum channel_result put_extended(const struct pax_buffer *extended)
{
	struct tar_header header = {.type = 'x', .magic = "ustar", .version = {'0', '0'}};
	if (extended->length == 0)
		return CHANNEL_OK;
	put_text(header.name, TAR_NAME_BYTES, "PaxHeaders/entry");
	(void)tar_put(header.mode, sizeof header.mode, 0644);
	(void)tar_put(header.uid, sizeof header.uid, 0);
	(void)tar_put(header.gid, sizeof header.gid, 0);
	(void)tar_put(header.mtime, sizeof header.mtime, 0);
	(void)tar_put(header.size, sizeof header.size, extended->length);
	tar_put_checksum(&header);
	if (stream_write(&header, sizeof header) != CHANNEL_OK || stream_write(extended->bytes, extended->length) != CHANNEL_OK)
		return CHANNEL_GONE;
	return archive_put_padding(extended->length);
}

int archive_put_entry(struct entry_out *entry)
{
	struct map map = {0};
	struct tar_header header;
	if (entry->pieces && make_map(entry->pieces, &map) < 0)
		return 0;
	fill_header(entry, &header, map.length + entry->size);
	int result = entry->extended->failed ? 0 : 1;
	if (result > 0 && (put_extended(entry->extended) != CHANNEL_OK || stream_write(&header, sizeof header) != CHANNEL_OK ||
			   stream_write(map.text, map.length) != CHANNEL_OK))
		result = -1;
	free(map.text);
	return result;
}

enum channel_result archive_put_end(void)
{
	return stream_write(zeros, sizeof zeros);
}
