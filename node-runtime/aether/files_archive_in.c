#include "files_archive_in.h"

#include "files_archive_records.h"
#include "limits.h"
#include "tar_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void entry_free(struct entry_in *entry)
{
	free(entry->path);
	free(entry->link);
	free(entry->xattrs.bytes);
	pieces_free(&entry->pieces);
	*entry = (struct entry_in){0};
}

static enum archive_result cut_short(const struct upload *upload)
{
	return upload->broken == CHANNEL_OK ? ARCHIVE_BAD : ARCHIVE_BROKEN;
}

/* 1 when all of it came. */
static int take_exactly(struct upload *upload, void *to, size_t length)
{
	const uint8_t *bytes;
	for (size_t done = 0; done < length;) {
		size_t got = upload_next(upload, length - done, &bytes);
		if (got == 0)
			return 0;
		memcpy((uint8_t *)to + done, bytes, got);
		done += got;
	}
	return 1;
}

static int skip(struct upload *upload, uint64_t length)
{
	const uint8_t *bytes;
	while (length > 0) {
		size_t got = upload_next(upload, length < SIZE_MAX ? (size_t)length : SIZE_MAX, &bytes);
		if (got == 0)
			return 0;
		length -= got;
	}
	return 1;
}

size_t archive_content(struct upload *upload, struct entry_in *entry, size_t most, const uint8_t **bytes)
{
	if (entry->stored < most)
		most = (size_t)entry->stored;
	size_t got = most == 0 ? 0 : upload_next(upload, most, bytes);
	entry->stored -= got;
	return got;
}

/* The payload of an extended header, ended by a NUL; owned. */
static enum archive_result take_payload(struct upload *upload, uint64_t size, size_t most, char **out)
{
	if (size == 0 || size > most)
		return ARCHIVE_BAD;
	char *bytes = malloc((size_t)size + 1);
	if (!bytes)
		return ARCHIVE_FAILED;
	if (!take_exactly(upload, bytes, (size_t)size) || !skip(upload, tar_padding(size))) {
		free(bytes);
		return cut_short(upload);
	}
	bytes[size] = '\0';
	*out = bytes;
	return ARCHIVE_ENTRY;
}

/* Newer records come behind older ones and so override them. */
static enum archive_result keep_globals(struct pax_buffer *globals, const char *payload, size_t length)
{
	if (globals->length + length > GLOBAL_RECORDS_BYTES || records_are_global(payload, length) == 0)
		return ARCHIVE_BAD;
	pax_append(globals, payload, length);
	return globals->failed ? ARCHIVE_FAILED : ARCHIVE_ENTRY;
}

/* What is said of every entry, before what is said of this one. */
static enum archive_result begin_records(const struct pax_buffer *globals, struct entry_in *entry, struct extended *extended)
{
	if (extended->began)
		return ARCHIVE_ENTRY;
	extended->began = 1;
	return globals->length == 0 ? ARCHIVE_ENTRY : entry_take_records(globals->bytes, globals->length, entry, extended);
}

static enum archive_result take_records(const struct pax_buffer *globals, const char *payload, size_t length, struct entry_in *entry, struct extended *extended)
{
	enum archive_result result = begin_records(globals, entry, extended);
	return result == ARCHIVE_ENTRY ? entry_take_records(payload, length, entry, extended) : result;
}

static int is_pax(char type)
{
	return type == 'x' || type == 'X' || type == 'g'; /* X: as Solaris wrote it before there was a standard */
}

/* Extended headers: PAX for one entry or for all, GNU's long names. */
static enum archive_result take_extended(struct upload *upload, struct pax_buffer *globals, char type, uint64_t size, struct entry_in *entry,
					 struct extended *extended)
{
	char *payload;
	enum archive_result result = take_payload(upload, size, is_pax(type) ? EXTENDED_HEADER_BYTES : ENTRY_PATH_BYTES, &payload);
	if (result != ARCHIVE_ENTRY)
		return result;
	if (type == 'g')
		result = keep_globals(globals, payload, (size_t)size);
	else if (is_pax(type))
		result = take_records(globals, payload, (size_t)size, entry, extended);
	else
		result = entry_set_text(type == 'L' ? &entry->path : &entry->link, payload, strlen(payload));
	free(payload);
	return result;
}

static enum archive_result name_from_header(struct entry_in *entry, const struct tar_header *header)
{
	char name[TAR_PREFIX_BYTES + 1 + TAR_NAME_BYTES + 1] = "";
	size_t length = 0;
	if (!entry->path) {
		if (memcmp(header->magic, "ustar", sizeof header->magic) == 0 && header->prefix[0] != '\0') {
			length = strnlen(header->prefix, sizeof header->prefix);
			memcpy(name, header->prefix, length);
			name[length++] = '/';
		}
		size_t rest = strnlen(header->name, sizeof header->name);
		memcpy(name + length, header->name, rest);
		enum archive_result result = entry_set_text(&entry->path, name, length + rest);
		if (result != ARCHIVE_ENTRY)
			return result;
	}
	size_t link = strnlen(header->link, sizeof header->link);
	return entry->link || link == 0 ? ARCHIVE_ENTRY : entry_set_text(&entry->link, header->link, link);
}

static int numbers_from_header(struct entry_in *entry, const struct tar_header *header, const struct extended *extended)
{
	uint64_t mode;
	if (tar_get(header->mode, sizeof header->mode, &mode) < 0)
		return 0;
	entry->mode = (mode_t)(mode & 07777);
	if (!extended->has_uid && tar_get(header->uid, sizeof header->uid, &entry->uid) < 0)
		return 0;
	if (!extended->has_gid && tar_get(header->gid, sizeof header->gid, &entry->gid) < 0)
		return 0;
	return extended->has_time || tar_get_signed(header->mtime, sizeof header->mtime, &entry->modified_s) == 0;
}

/* Types that have no content, whatever size they claim. */
static int has_content(char type)
{
	return type != '1' && type != '2' && type != '3' && type != '4' && type != '5' && type != '6';
}

static int is_directory_by_name(const struct entry_in *entry)
{
	size_t length = strlen(entry->path);
	return entry->path[length - 1] == '/';
}

/* Forms of a regular file: old archives write a directory as one whose name ends with a slash. */
static void settle_type(struct entry_in *entry, char type)
{
	entry->type = type == '\0' || type == '7' || type == 'S' ? '0' : type;
	if (entry->type == '0' && type != 'S' && is_directory_by_name(entry))
		entry->type = '5';
}

static enum archive_result take_entry(struct upload *upload, const struct tar_header *header, uint64_t size, struct entry_in *entry, struct extended *extended)
{
	enum archive_result result = name_from_header(entry, header);
	if (result != ARCHIVE_ENTRY)
		return result;
	if (!numbers_from_header(entry, header, extended))
		return ARCHIVE_BAD;
	settle_type(entry, header->type);
	if (extended->has_size)
		size = extended->size;
	if (size > INT64_MAX - TAR_BLOCK_BYTES)
		return ARCHIVE_BAD;
	entry->stored = entry->size = has_content(entry->type) ? size : 0;
	entry->padding = tar_padding(entry->stored);
	return sparse_in_begin(&extended->sparse, upload, header, entry);
}

/* After the first empty block only emptiness may follow: anything else would be lost in silence. */
static enum archive_result take_end(struct upload *upload)
{
	const uint8_t *bytes;
	size_t got;
	while ((got = upload_next(upload, SIZE_MAX, &bytes)) > 0)
		if (!tar_is_zero(bytes, got))
			return ARCHIVE_BAD;
	return upload->broken == CHANNEL_OK ? ARCHIVE_END : ARCHIVE_BROKEN;
}

enum archive_result archive_next(struct upload *upload, struct pax_buffer *globals, struct entry_in *entry)
{
	struct extended extended = {0};
	struct tar_header header;
	if (!skip(upload, entry->stored + entry->padding))
		return cut_short(upload);
	entry_free(entry);
	for (;;) {
		uint64_t size;
		if (!take_exactly(upload, &header, sizeof header))
			return cut_short(upload);
		if (tar_is_zero(&header, sizeof header))
			return take_end(upload);
		if (!tar_checksum_is_right(&header) || tar_get(header.size, sizeof header.size, &size) < 0)
			return ARCHIVE_BAD;
		int is_entry = !strchr("xXgLK", header.type) || header.type == '\0';
		enum archive_result result = is_entry ? begin_records(globals, entry, &extended)
						      : take_extended(upload, globals, header.type, size, entry, &extended);
		if (result != ARCHIVE_ENTRY)
			return result;
		if (is_entry)
			return take_entry(upload, &header, size, entry, &extended);
	}
}
