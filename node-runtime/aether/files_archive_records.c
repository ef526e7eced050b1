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

/* An empty value takes back what a record for all entries said. */
static int set_number(const struct pax_record *record, int *has, uint64_t *to)
{
	*has = record->value_length > 0;
	return !*has || pax_number(record, to) == 0;
}

static enum archive_result set_name(const struct pax_record *record, char **to)
{
	if (record->value_length > 0)
		return entry_set_text(to, record->value, record->value_length);
	free(*to);
	*to = NULL;
	return ARCHIVE_ENTRY;
}

static int starts_with(const struct pax_record *record, const char *prefix)
{
	return record->key_length > strlen(prefix) && memcmp(record->key, prefix, strlen(prefix)) == 0;
}

static const char XATTR_PREFIX[] = "SCHILY.xattr.", OTHER_XATTR_PREFIX[] = "LIBARCHIVE.xattr.";

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

/* libarchive writes each attribute in two forms, side by side; one of them is enough. */
static int is_told_twice(const struct pax_record *other, const char *at, const char *end)
{
	const size_t prefix = sizeof XATTR_PREFIX - 1, other_prefix = sizeof OTHER_XATTR_PREFIX - 1, length = other->key_length - other_prefix;
	struct pax_record record;
	while (pax_next(&at, end, &record) > 0)
		if (starts_with(&record, XATTR_PREFIX) && record.key_length - prefix == length &&
		    memcmp(record.key + prefix, other->key + other_prefix, length) == 0)
			return 1;
	return 0;
}

/*
 * What says nothing that a file here could have: remarks and names of character sets (all is kept as bytes), names beside the numbers
 * of owners, other times than that of the last change, where the file once lay.
 */
static int is_no_loss(const struct pax_record *record)
{
	static const char *const keys[] = {"atime", "ctime", "comment", "charset", "hdrcharset", "uname", "gname", "LIBARCHIVE.creationtime",
					   "LIBARCHIVE.symlinktype", "SCHILY.dev", "SCHILY.ino", "SCHILY.nlink", "SCHILY.filetype", "SCHILY.realsize",
					   "SCHILY.offset", "SCHILY.archtype", "SCHILY.tarfiletype", "SCHILY.release", "SCHILY.devmajor", "SCHILY.devminor"};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (pax_is(record, keys[i]))
			return 1;
	return starts_with(record, "SCHILY.volhdr.") || starts_with(record, "GNU.volume.");
}

static unsigned loss_of(const struct pax_record *record, const char *bytes, const char *end)
{
	if (record->value_length == 0 || is_no_loss(record))
		return 0;
	if (starts_with(record, "SCHILY.acl."))
		return LEFT_ACL;
	if (starts_with(record, OTHER_XATTR_PREFIX))
		return is_told_twice(record, bytes, end) ? 0 : LEFT_XATTR;
	if (pax_is(record, "RHT.security.selinux"))
		return LEFT_XATTR;
	return pax_is(record, "SCHILY.fflags") ? LEFT_FLAGS : LEFT_RECORD;
}

static int set_time(const struct pax_record *record, struct entry_in *entry, struct extended *extended)
{
	extended->has_time = record->value_length > 0;
	if (!extended->has_time)
		entry->modified_ns = 0;
	return !extended->has_time || pax_time(record, &entry->modified_s, &entry->modified_ns) == 0;
}

/* Numbers and what GNU's sparse files need: 1 taken, 0 malformed, -1 when the record is something else. */
static int take_fact(const struct pax_record *record, struct entry_in *entry, struct extended *extended)
{
	if (pax_is(record, "size"))
		return set_number(record, &extended->has_size, &extended->size);
	if (pax_is(record, "uid"))
		return set_number(record, &extended->has_uid, &entry->uid);
	if (pax_is(record, "gid"))
		return set_number(record, &extended->has_gid, &entry->gid);
	if (pax_is(record, "mtime"))
		return set_time(record, entry, extended);
	if (starts_with(record, "GNU.sparse."))
		return sparse_in_record(&extended->sparse, record, &entry->pieces);
	return starts_with(record, XATTR_PREFIX) ? take_xattr(record, entry) : -1;
}

static enum archive_result take_record(const struct pax_record *record, const char *bytes, const char *end, struct entry_in *entry,
				       struct extended *extended)
{
	if (pax_is(record, "path"))
		return extended->sparse.has_name ? ARCHIVE_ENTRY : set_name(record, &entry->path);
	if (pax_is(record, "GNU.sparse.name")) {
		extended->sparse.has_name = 1;
		return entry_set_text(&entry->path, record->value, record->value_length);
	}
	if (pax_is(record, "linkpath"))
		return set_name(record, &entry->link);
	int taken = take_fact(record, entry, extended);
	if (taken < 0)
		entry->left_out |= loss_of(record, bytes, end);
	return taken == 0 ? ARCHIVE_BAD : ARCHIVE_ENTRY;
}

int records_are_global(const char *bytes, size_t length)
{
	const char *at = bytes, *end = bytes + length;
	struct pax_record record;
	int more;
	while ((more = pax_next(&at, end, &record)) > 0)
		if (pax_is(&record, "path") || pax_is(&record, "linkpath") || pax_is(&record, "size") || starts_with(&record, "GNU.sparse."))
			return 0;
	return more == 0;
}

enum archive_result entry_take_records(const char *bytes, size_t length, struct entry_in *entry, struct extended *extended)
{
	const char *at = bytes, *end = bytes + length;
	struct pax_record record;
	int more;
	while ((more = pax_next(&at, end, &record)) > 0) {
		enum archive_result taken = take_record(&record, bytes, end, entry, extended);
		if (taken != ARCHIVE_ENTRY)
			return taken;
	}
	return more < 0 ? ARCHIVE_BAD : ARCHIVE_ENTRY;
}
