#include "files_packing.h"

#include "files_archive_out.h"
#include "files_xattr.h"
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STAT_BLOCK_BYTES = 512 };

enum packed pack_omit(struct packing *packing, enum file_omission what, const char *path)
{
	return omit(&packing->omissions, what, path) == CHANNEL_OK ? PACKED : PACKING_GONE;
}

static int add_xattr(const struct xattr *attribute, void *context)
{
	struct packing *packing = context;
	char name[XATTR_NAME_BYTES]; /* '=' and '%' are written as three */
	if (packing->plain && strncmp(attribute->name, "user.", 5) != 0) {
		packing->left_attributes = 1;
		return 0;
	}
	size_t at = 0;
	for (const char *from = attribute->name; *from && at + 4 < sizeof name; from++) {
		const char *code = *from == '=' ? "%3D" : *from == '%' ? "%25" : NULL;
		if (code) {
			memcpy(name + at, code, 3);
			at += 3;
		} else
			name[at++] = *from;
	}
	name[at] = '\0';
	pax_add(&packing->extended, "SCHILY.xattr.", name, attribute->value, attribute->length);
	return 0;
}

/* For a reader who will not take them: the bits that make a file more than its owner's. Links have no mode. */
static int leave_set_id(struct packing *packing, struct entry_out *entry)
{
	const mode_t bits = S_ISUID | S_ISGID | S_ISVTX;
	if (!packing->plain || entry->type == '2' || !(entry->status->st_mode & bits))
		return PACKED;
	packing->plain_status = *entry->status;
	packing->plain_status.st_mode &= ~bits;
	entry->status = &packing->plain_status;
	return entry->type == '1' ? PACKED : pack_omit(packing, OMITTED_SET_ID, entry->path);
}

/* The headers of an item. `fd`: for its attributes, or -1. */
static int put_headers(struct packing *packing, struct entry_out *entry, int fd)
{
	packing->extended.length = 0;
	packing->extended.failed = 0;
	packing->left_attributes = 0;
	entry->extended = &packing->extended;
	if (fd >= 0 && xattr_each(fd, add_xattr, packing) < 0)
		packing->left_attributes = 1;
	if (packing->left_attributes && pack_omit(packing, OMITTED_XATTR, entry->path) != PACKED)
		return PACKING_GONE;
	if (leave_set_id(packing, entry) != PACKED)
		return PACKING_GONE;
	packing->entries++;
	int put = archive_put_entry(entry);
	return put > 0 ? PACKED : put < 0 ? PACKING_GONE : PACKING_FAILED;
}

/* Exactly `length` bytes from `offset`: a header has promised them. Sets *short_by when the file has become shorter. */
static int put_bytes(int fd, uint64_t offset, uint64_t length, int *short_by)
{
	while (length > 0) {
		size_t room;
		uint8_t *to = stream_room(1, &room);
		if (!to)
			return PACKING_GONE;
		size_t wanted = room < length ? room : (size_t)length;
		ssize_t got = pread(fd, to, wanted, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			*short_by = 1;
			memset(to, 0, wanted);
			got = (ssize_t)wanted;
		}
		if (stream_fill((size_t)got) != CHANNEL_OK)
			return PACKING_GONE;
		offset += (uint64_t)got;
		length -= (uint64_t)got;
	}
	return PACKED;
}

static int put_content(struct packing *packing, const struct item *item, int fd, const struct pieces *pieces, uint64_t size)
{
	int shortened = 0, result = PACKED;
	if (!pieces)
		result = put_bytes(fd, 0, size, &shortened);
	for (size_t at = 0; pieces && result == PACKED && at < pieces->count; at++)
		result = put_bytes(fd, pieces->list[at].offset, pieces->list[at].length, &shortened);
	packing->bytes += size;
	if (result == PACKED && archive_put_padding(size) != CHANNEL_OK)
		result = PACKING_GONE;
	return result == PACKED && shortened ? pack_omit(packing, OMITTED_CHANGED, item->path) : result;
}

/* A file with holes: its data, and where it ends. 0, or -1: then it is carried whole. */
static int find_holes(int fd, const struct stat *status, struct pieces *pieces)
{
	uint64_t size = (uint64_t)status->st_size;
	if ((uint64_t)status->st_blocks * STAT_BLOCK_BYTES >= size || pieces_of(fd, size, pieces) < 0)
		return -1;
	const struct piece *last = pieces->count > 0 ? &pieces->list[pieces->count - 1] : NULL;
	if (last && last->offset == 0 && last->length == size)
		return -1;
	return last && last->offset + last->length == size ? 0 : pieces_add(pieces, size, 0);
}

static int pack_opened(struct packing *packing, struct item *item, int fd)
{
	struct pieces pieces = {0};
	struct entry_out entry = {.path = item->path, .type = '0', .status = &item->status};
	if (find_holes(fd, &item->status, &pieces) == 0)
		entry.pieces = &pieces;
	entry.size = entry.pieces ? pieces_bytes(&pieces) : (uint64_t)item->status.st_size;
	int result = put_headers(packing, &entry, fd);
	if (result == PACKED)
		result = put_content(packing, item, fd, entry.pieces, entry.size);
	pieces_free(&pieces);
	return result;
}

int pack_vanished(void)
{
	return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO;
}

/* Opened anew, so it is looked at anew: it may be another file by now. */
static int pack_file(struct packing *packing, struct item *item)
{
	int fd = openat(item->directory, item->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return pack_vanished() ? PACKED : pack_omit(packing, OMITTED_UNREADABLE, item->path);
	int result = PACKED;
	if (fstat(fd, &item->status) == 0 && S_ISREG(item->status.st_mode))
		result = pack_opened(packing, item, fd);
	close(fd);
	return result;
}

static int pack_symlink(struct packing *packing, struct item *item)
{
	char target[PATH_BYTES];
	ssize_t length = readlinkat(item->directory, item->name, target, sizeof target - 1);
	if (length < 0)
		return pack_vanished() ? PACKED : pack_omit(packing, OMITTED_UNREADABLE, item->path);
	target[length] = '\0';
	struct entry_out entry = {.path = item->path, .link = target, .type = '2', .status = &item->status};
	return put_headers(packing, &entry, -1);
}

static int pack_directory(struct packing *packing, struct item *item)
{
	size_t length = strlen(item->path);
	if (length + 2 > packing->path_capacity) {
		char *grown = realloc(packing->path, 2 * (length + 2));
		if (!grown)
			return PACKING_FAILED;
		packing->path = grown;
		packing->path_capacity = 2 * (length + 2);
	}
	memcpy(packing->path, item->path, length);
	memcpy(packing->path + length, "/", 2);
	struct entry_out entry = {.path = packing->path, .type = '5', .status = &item->status};
	int fd = openat(item->directory, item->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int result = put_headers(packing, &entry, fd);
	if (fd >= 0)
		close(fd);
	return result;
}

/* Another name of a file that is in the archive already. 1: it was, and is done. 0: it is to be packed itself. */
static int pack_known(struct packing *packing, struct item *item, int *result)
{
	const char *first;
	if (S_ISDIR(item->status.st_mode) || item->status.st_nlink < 2)
		return 0;
	enum link_result met = links_meet(&packing->links, &item->status, item->path, &first);
	if (met == LINK_FIRST)
		return 0;
	if (met == LINK_FORGOTTEN) {
		*result = pack_omit(packing, OMITTED_HARD_LINK, item->path);
		return *result != PACKED;
	}
	struct entry_out entry = {.path = item->path, .link = first, .type = '1', .status = &item->status};
	*result = put_headers(packing, &entry, -1);
	return 1;
}

enum packed pack_item(struct packing *packing, struct item *item)
{
	int result = PACKED;
	switch (item->status.st_mode & S_IFMT) {
	case S_IFREG:
		return pack_known(packing, item, &result) ? result : pack_file(packing, item);
	case S_IFLNK:
		return pack_known(packing, item, &result) ? result : pack_symlink(packing, item);
	case S_IFDIR:
		return pack_directory(packing, item);
	case S_IFIFO:
		return pack_omit(packing, OMITTED_FIFO, item->path);
	case S_IFSOCK:
		return pack_omit(packing, OMITTED_SOCKET, item->path);
	default:
		return pack_omit(packing, OMITTED_DEVICE, item->path);
	}
}

void packing_free(struct packing *packing)
{
	links_free(&packing->links);
	free(packing->path);
	free(packing->extended.bytes);
}
