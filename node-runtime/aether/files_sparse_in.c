#include "files_sparse_in.h"

#include "limits.h"

#include <string.h>

enum { OLD_MAP_OFFSET = 386, OLD_MAP_IN_HEADER = 4, OLD_MAP_IN_BLOCK = 21, OLD_FIELD_BYTES = 12, OLD_MORE_OFFSET = 482, OLD_SIZE_OFFSET = 483, BLOCK_MORE_OFFSET = 504 };

/* `offset,length,offset,length…` */
static int take_list(const struct pax_record *record, struct pieces *pieces)
{
	const char *at = record->value, *end = at + record->value_length;
	uint64_t pair[2];
	for (int side = 0; at < end; side = !side) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma ? comma : end;
		const struct pax_record number = {.value = at, .value_length = (size_t)(stop - at)};
		if (pax_number(&number, &pair[side]) < 0)
			return 0;
		if (side == 1 && pieces_add(pieces, pair[0], pair[1]) < 0)
			return 0;
		at = comma ? comma + 1 : end;
		if (!comma && side == 0)
			return 0;
	}
	return 1;
}

int sparse_in_record(struct sparse_in *sparse, const struct pax_record *record, struct pieces *pieces)
{
	uint64_t number;
	if (pax_is(record, "GNU.sparse.map")) {
		sparse->has_map = 1;
		return take_list(record, pieces);
	}
	if (pax_number(record, &number) < 0)
		return 0;
	if (pax_is(record, "GNU.sparse.major")) {
		sparse->major = number;
		sparse->map_follows = number == 1;
		return number <= 1;
	}
	if (pax_is(record, "GNU.sparse.realsize") || pax_is(record, "GNU.sparse.size")) {
		sparse->has_real_size = 1;
		sparse->real_size = number;
	} else if (pax_is(record, "GNU.sparse.offset")) {
		sparse->next_offset = number;
		sparse->offset_waits = 1;
	} else if (pax_is(record, "GNU.sparse.numbytes")) {
		sparse->has_map = 1;
		if (!sparse->offset_waits || pieces_add(pieces, sparse->next_offset, number) < 0)
			return 0;
		sparse->offset_waits = 0;
	}
	return 1;
}

/* Lines of digits at the head of the content, in whole blocks. */
struct map_reader {
	struct upload *upload;
	struct entry_in *entry;
	char block[TAR_BLOCK_BYTES];
	size_t at;
};

static int take_block(struct upload *upload, void *to)
{
	const uint8_t *bytes;
	for (size_t done = 0; done < TAR_BLOCK_BYTES;) {
		size_t got = upload_next(upload, TAR_BLOCK_BYTES - done, &bytes);
		if (got == 0)
			return 0;
		memcpy((uint8_t *)to + done, bytes, got);
		done += got;
	}
	return 1;
}

static int next_character(struct map_reader *reader)
{
	if (reader->at == sizeof reader->block) {
		if (reader->entry->stored < TAR_BLOCK_BYTES || !take_block(reader->upload, reader->block))
			return -1;
		reader->entry->stored -= TAR_BLOCK_BYTES;
		reader->at = 0;
	}
	return (unsigned char)reader->block[reader->at++];
}

static int next_number(struct map_reader *reader, uint64_t *out)
{
	uint64_t value = 0;
	for (int digits = 0;; digits++) {
		int character = next_character(reader);
		if (character == '\n' && digits > 0) {
			*out = value;
			return 0;
		}
		if (character < '0' || character > '9' || value > INT64_MAX / 10 - 1)
			return -1;
		value = value * 10 + (uint64_t)(character - '0');
	}
}

static int take_map(struct upload *upload, struct entry_in *entry)
{
	struct map_reader reader = {.upload = upload, .entry = entry, .at = TAR_BLOCK_BYTES};
	uint64_t count, offset, length;
	if (next_number(&reader, &count) < 0 || count > SPARSE_PIECES_MAX)
		return 0;
	while (count-- > 0)
		if (next_number(&reader, &offset) < 0 || next_number(&reader, &length) < 0 || pieces_add(&entry->pieces, offset, length) < 0)
			return 0;
	return 1;
}

static int take_old_fields(const char *at, int count, struct pieces *pieces)
{
	for (; count > 0; count--, at += 2 * OLD_FIELD_BYTES) {
		uint64_t offset, length;
		if (at[OLD_FIELD_BYTES] == '\0')
			return 1; /* an unused place: nothing follows */
		if (tar_get(at, OLD_FIELD_BYTES, &offset) < 0 || tar_get(at + OLD_FIELD_BYTES, OLD_FIELD_BYTES, &length) < 0)
			return 0;
		if (pieces_add(pieces, offset, length) < 0)
			return 0;
	}
	return 1;
}

/* The form before PAX: in the header, then in blocks of its own that the size does not count. */
static int take_old_map(struct sparse_in *sparse, struct upload *upload, const struct tar_header *header, struct entry_in *entry)
{
	const char *bytes = (const char *)header;
	char block[TAR_BLOCK_BYTES];
	int more = bytes[OLD_MORE_OFFSET] != '\0';
	sparse->has_real_size = 1;
	if (tar_get(bytes + OLD_SIZE_OFFSET, OLD_FIELD_BYTES, &sparse->real_size) < 0 || !take_old_fields(bytes + OLD_MAP_OFFSET, OLD_MAP_IN_HEADER, &entry->pieces))
		return 0;
	while (more) {
		if (!take_block(upload, block) || !take_old_fields(block, OLD_MAP_IN_BLOCK, &entry->pieces))
			return 0;
		more = block[BLOCK_MORE_OFFSET] != '\0';
	}
	return 1;
}

enum archive_result sparse_in_begin(struct sparse_in *sparse, struct upload *upload, const struct tar_header *header, struct entry_in *entry)
{
	int fine = 1;
	if (header->type == 'S')
		fine = take_old_map(sparse, upload, header, entry);
	else if (!sparse->has_map && !sparse->map_follows)
		return ARCHIVE_ENTRY;
	else if (sparse->map_follows)
		fine = take_map(upload, entry);
	if (upload->broken != CHANNEL_OK)
		return ARCHIVE_BROKEN;
	if (!fine || !sparse->has_real_size || entry->type != '0' || sparse->real_size > INT64_MAX)
		return ARCHIVE_BAD;
	entry->sparse = 1;
	entry->size = sparse->real_size;
	return pieces_are_sound(&entry->pieces, entry->size) && pieces_bytes(&entry->pieces) == entry->stored ? ARCHIVE_ENTRY : ARCHIVE_BAD;
}
