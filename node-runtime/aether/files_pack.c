/*
 * PACK: a tree as an archive. Links are carried as links and followed never, except a link that the request itself names. What cannot
 * be carried is told; what vanishes while the walk is under way was simply not there.
 */
#include "files_archive_out.h"
#include "files_links.h"
#include "files_omit.h"
#include "files_path.h"
#include "files_request.h"
#include "files_walk.h"
#include "files_xattr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

struct packing {
	struct links links;
	struct omissions omissions;
	uint64_t bytes, entries;
	char *path; /* with a slash behind it, for a directory */
	size_t path_capacity;
	struct pax_buffer extended;
};

/* One thing to pack: a name in a directory, and what it is called in the archive. */
struct item {
	int directory;
	const char *name, *path;
	struct stat status;
};

/* FAILED: errno says why. GONE: nobody is there to be told. */
enum { STAT_BLOCK_BYTES = 512, DONE = 0, GONE = -1, FAILED = -2 };

static int omitted(struct packing *packing, enum file_omission what, const char *path)
{
	return omit(&packing->omissions, what, path) == CHANNEL_OK ? DONE : GONE;
}

static int add_xattr(const struct xattr *attribute, void *context)
{
	char name[XATTR_NAME_BYTES]; /* '=' and '%' are written as three */
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
	pax_add(context, "SCHILY.xattr.", name, attribute->value, attribute->length);
	return 0;
}

/* The headers of an item. `fd`: for its attributes, or -1. */
static int put_headers(struct packing *packing, struct entry_out *entry, int fd)
{
	packing->extended.length = 0;
	packing->extended.failed = 0;
	entry->extended = &packing->extended;
	if (fd >= 0 && xattr_each(fd, add_xattr, &packing->extended) < 0 && omitted(packing, OMITTED_XATTR, entry->path) != DONE)
		return GONE;
	packing->entries++;
	int put = archive_put_entry(entry);
	return put > 0 ? DONE : put < 0 ? GONE : FAILED;
}

/* Exactly `length` bytes from `offset`: a header has promised them. Sets *short_by when the file has become shorter. */
static int put_bytes(int fd, uint64_t offset, uint64_t length, int *short_by)
{
	while (length > 0) {
		size_t room;
		uint8_t *to = stream_room(1, &room);
		if (!to)
			return GONE;
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
			return GONE;
		offset += (uint64_t)got;
		length -= (uint64_t)got;
	}
	return DONE;
}

static int put_content(struct packing *packing, const struct item *item, int fd, const struct pieces *pieces, uint64_t size)
{
	int shortened = 0, result = DONE;
	if (!pieces)
		result = put_bytes(fd, 0, size, &shortened);
	for (size_t at = 0; pieces && result == DONE && at < pieces->count; at++)
		result = put_bytes(fd, pieces->list[at].offset, pieces->list[at].length, &shortened);
	packing->bytes += size;
	if (result == DONE && archive_put_padding(size) != CHANNEL_OK)
		result = GONE;
	return result == DONE && shortened ? omitted(packing, OMITTED_CHANGED, item->path) : result;
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
	if (result == DONE)
		result = put_content(packing, item, fd, entry.pieces, entry.size);
	pieces_free(&pieces);
	return result;
}

static int is_vanished(void)
{
	return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO;
}

/* Opened anew, so it is looked at anew: it may be another file by now. */
static int pack_file(struct packing *packing, struct item *item)
{
	int fd = openat(item->directory, item->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return is_vanished() ? DONE : omitted(packing, OMITTED_UNREADABLE, item->path);
	int result = DONE;
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
		return DONE;
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
			return FAILED;
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
		*result = omitted(packing, OMITTED_HARD_LINK, item->path);
		return *result != DONE;
	}
	struct entry_out entry = {.path = item->path, .link = first, .type = '1', .status = &item->status};
	*result = put_headers(packing, &entry, -1);
	return 1;
}

static int pack_item(struct packing *packing, struct item *item)
{
	int result = DONE;
	switch (item->status.st_mode & S_IFMT) {
	case S_IFREG:
		return pack_known(packing, item, &result) ? result : pack_file(packing, item);
	case S_IFLNK:
		return pack_known(packing, item, &result) ? result : pack_symlink(packing, item);
	case S_IFDIR:
		return pack_directory(packing, item);
	case S_IFIFO:
		return omitted(packing, OMITTED_FIFO, item->path);
	case S_IFSOCK:
		return omitted(packing, OMITTED_SOCKET, item->path);
	default:
		return omitted(packing, OMITTED_DEVICE, item->path);
	}
}

/* File systems whose files are questions to the kernel: without end, or never twice the same. */
static int is_kernels(int directory, const char *name)
{
	struct statfs status;
	int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), result = 0;
	if (fd >= 0 && fstatfs(fd, &status) == 0)
		switch ((unsigned long)status.f_type) {
		case PROC_SUPER_MAGIC:
		case SYSFS_MAGIC:
		case DEVPTS_SUPER_MAGIC:
		case CGROUP_SUPER_MAGIC:
		case CGROUP2_SUPER_MAGIC:
		case DEBUGFS_MAGIC:
		case TRACEFS_MAGIC:
		case SECURITYFS_MAGIC:
		case BPF_FS_MAGIC:
			result = 1;
		}
	if (fd >= 0)
		close(fd);
	return result;
}

static int pack_found(struct packing *packing, struct walk *walk, const struct walk_entry *found, dev_t device)
{
	struct item item = {.directory = found->directory, .name = found->name, .path = walk->path};
	if (fstatat(found->directory, found->name, &item.status, AT_SYMLINK_NOFOLLOW) < 0)
		return DONE;
	if (item.status.st_dev != device && is_kernels(found->directory, found->name))
		return omitted(packing, OMITTED_MOUNT, item.path);
	int result = pack_item(packing, &item);
	if (result != DONE || !S_ISDIR(item.status.st_mode) || walk_enter(walk) == 0 || is_vanished())
		return result;
	return errno == E2BIG ? FAILED : omitted(packing, OMITTED_UNREADABLE, item.path);
}

static int pack_tree(struct packing *packing, int root, char blamed[PATH_BYTES])
{
	struct walk walk;
	struct walk_entry found;
	struct item top = {.directory = root, .name = ".", .path = "."};
	int result = fstat(root, &top.status) < 0 ? FAILED : pack_item(packing, &top);
	if (walk_begin(&walk, root) < 0)
		return FAILED;
	while (result == DONE) {
		enum walk_event event = walk_next(&walk, &found);
		if (event == WALK_END)
			break;
		if (event == WALK_ENTRY)
			result = pack_found(packing, &walk, &found, top.status.st_dev);
		else if (event == WALK_FAILED)
			result = FAILED;
	}
	int problem = errno;
	strncat(strcpy(blamed, ""), walk.path, PATH_BYTES - 1);
	walk_end(&walk);
	errno = problem;
	return result;
}

static int pack_single(struct packing *packing, const char *path)
{
	struct place place;
	if (place_find(path, &place) < 0)
		return FAILED;
	struct item item = {.directory = place.directory, .name = place.name, .path = place.name};
	int result = fstatat(place.directory, place.name, &item.status, AT_SYMLINK_NOFOLLOW) < 0 ? FAILED : pack_item(packing, &item);
	int problem = errno;
	place_close(&place);
	errno = problem;
	return result;
}

static enum channel_result finish(struct packing *packing, int result, const char *blamed)
{
	int problem = errno;
	if (result == DONE && archive_put_end() != CHANNEL_OK)
		return CHANNEL_GONE;
	if (result == GONE || stream_flush() != CHANNEL_OK)
		return CHANNEL_GONE;
	if (result == FAILED)
		return channel_fail_at(REASON_ERRNO, problem ? problem : ENOMEM, blamed);
	return channel_end(packing->bytes, packing->entries, packing->omissions.count);
}

enum channel_result files_pack(const struct channel_frame *frame)
{
	const char *path = request_text(frame, "path");
	struct packing packing = {0};
	char blamed[PATH_BYTES] = "";
	if (!path)
		return CHANNEL_MALFORMED;
	stream_begin();
	int root = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC), result;
	if (root >= 0)
		result = pack_tree(&packing, root, blamed);
	else if (errno == ENOTDIR)
		result = pack_single(&packing, path);
	else
		result = FAILED;
	enum channel_result told = finish(&packing, result, blamed);
	links_free(&packing.links);
	free(packing.path);
	free(packing.extended.bytes);
	return told;
}
