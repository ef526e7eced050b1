#include "files_archive_records.h"

#include "limits.h"

#include <stdlib.h>
#include <string.h>

enum archive_result entry_set_text(char **to, const char *from, size_t length)
{
	if (length == 0 || length > ENTRY_PATH_BYTES || memchr(from, '\0', length))
		return ARCHIVE_BAD;
	char *copy = malloc(length + 1);
	if (!copy)
		return ARCHIVE_FAILED;
	memcpy(copy, from, length);
	copy[length] = '\0';
	free(*to);
	*to = copy;
	return ARCHIVE_ENTRY;
}

static int set_number(const struct pax_record *record, int *has, uint64_t *to)
{
	*has = 1;
	return pax_number(record, to) == 0;
}

static const char XATTR_PREFIX[] = "SCHILY.xattr.";

/* Kept as the archive writes it; the name is decoded when it is set. */
static int take_xattr(const struct pax_record *record, struct entry_in *entry)
{
	const size_t prefix = sizeof XATTR_PREFIX - 1, length = record->key_length - prefix;
	char name[XATTR_NAME_BYTES];
	if (length >= sizeof name)
		return 0;
	memcpy(name, record->key + prefix, length);
	name[length] = '\0';
	pax_add(&entry->xattrs, "", name, record->value, record->value_length);
	return !entry->xattrs.failed;
}

static int starts_with(const struct pax_record *record, const char *prefix)
{
	return record->key_length > strlen(prefix) && memcmp(record->key, prefix, strlen(prefix)) == 0;
}

static enum archive_result take_record(const struct pax_record *record, struct entry_in *entry, struct extended *extended)
{
	int fine = 1;
	if (pax_is(record, "path"))
		return extended->sparse.has_name ? ARCHIVE_ENTRY : entry_set_text(&entry->path, record->value, record->value_length);
	if (pax_is(record, "GNU.sparse.name")) {
		extended->sparse.has_name = 1;
		return entry_set_text(&entry->path, record->value, record->value_length);
	}
	if (pax_is(record, "linkpath"))
		return entry_set_text(&entry->link, record->value, record->value_length);
	if (pax_is(record, "size"))
		fine = set_number(record, &extended->has_size, &extended->size);
	else if (pax_is(record, "uid"))
		fine = set_number(record, &extended->has_uid, &entry->uid);
	else if (pax_is(record, "gid"))
		fine = set_number(record, &extended->has_gid, &entry->gid);
	else if (pax_is(record, "mtime")) {
		extended->has_time = 1;
		fine = pax_time(record, &entry->modified_s, &entry->modified_ns) == 0;
	} else if (starts_with(record, "GNU.sparse."))
		fine = sparse_in_record(&extended->sparse, record, &entry->pieces);
	else if (starts_with(record, XATTR_PREFIX))
		fine = take_xattr(record, entry);
	return fine ? ARCHIVE_ENTRY : ARCHIVE_BAD;
}

enum archive_result entry_take_records(const char *bytes, size_t length, struct entry_in *entry, struct extended *extended)
{
	const char *at = bytes, *end = bytes + length;
	struct pax_record record;
	int more;
	while ((more = pax_next(&at, end, &record)) > 0) {
		enum archive_result taken = take_record(&record, entry, extended);
		if (taken != ARCHIVE_ENTRY)
			return taken;
	}
	return more < 0 ? ARCHIVE_BAD : ARCHIVE_ENTRY;
}
