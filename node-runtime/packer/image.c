#include "image.h"

#include "digest.h"
#include "erofs.h"
#include "limits.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint8_t *image;
static uint64_t cursor; /* end of the inodes placed so far */
static uint64_t next_block; /* of directories and links that do not fit beside their inode */
static uint32_t inode_count;
static uint16_t device_numbers[DEVICES_MAX + 1]; /* in this image, 1…; 0: not used */
static int device_count;

static uint64_t align(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Directories ------------------------------------------------------------------------------------------------- */

/* Entry `i` of a directory with `.` and `..` in their places: EROFS searches, so all names are in order of their bytes. */
struct listed {
	const char *name;
	const struct inode *inode;
};

static struct listed *list(const struct inode *directory, uint32_t *count)
{
	struct listed *all = must(malloc((directory->entry_count + 2) * sizeof *all));
	uint32_t filled = 0, next = 0;
	const struct listed DOTS[] = {{".", directory}, {"..", directory->parent}};
	for (int dot = 0; dot < 2; dot++) {
		for (; next < directory->entry_count && strcmp(directory->entries[next].name, DOTS[dot].name) < 0; next++)
			all[filled++] = (struct listed){directory->entries[next].name, directory->entries[next].inode};
		all[filled++] = DOTS[dot];
	}
	for (; next < directory->entry_count; next++)
		all[filled++] = (struct listed){directory->entries[next].name, directory->entries[next].inode};
	*count = filled;
	return all;
}

/* How many entries from `from` on fill one block, and how many bytes they take. */
static uint32_t fill_block(const struct listed *all, uint32_t from, uint32_t count, size_t *used)
{
	uint32_t at = from;
	for (*used = 0; at < count; at++) {
		size_t more = sizeof(struct erofs_dirent) + strlen(all[at].name);
		if (*used + more > BLOCK_BYTES)
			break;
		*used += more;
	}
	return at - from;
}

static uint64_t directory_size(const struct inode *directory)
{
	uint32_t count, from = 0;
	size_t used = 0;
	uint64_t size = 0;
	struct listed *all = list(directory, &count);
	while (from < count) {
		from += fill_block(all, from, count, &used);
		size += from < count ? BLOCK_BYTES : used;
	}
	free(all);
	return size;
}

static uint8_t type_of(mode_t mode)
{
	static const struct {
		mode_t format;
		uint8_t type;
	} TYPES[] = {{S_IFREG, 1}, {S_IFDIR, 2}, {S_IFCHR, 3}, {S_IFBLK, 4}, {S_IFIFO, 5}, {S_IFSOCK, 6}, {S_IFLNK, 7}};
	for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
		if ((mode & S_IFMT) == TYPES[i].format)
			return TYPES[i].type;
	return 0;
}

static void write_block(uint8_t *to, const struct listed *all, uint32_t count)
{
	uint16_t offset = (uint16_t)(count * sizeof(struct erofs_dirent));
	for (uint32_t i = 0; i < count; i++) {
		struct erofs_dirent entry = {all[i].inode->at / EROFS_SLOT_BYTES, offset, type_of(all[i].inode->mode), 0};
		size_t length = strlen(all[i].name);
		memcpy(to + i * sizeof entry, &entry, sizeof entry);
		memcpy(to + offset, all[i].name, length);
		offset = (uint16_t)(offset + length);
	}
}

/* Placing ----------------------------------------------------------------------------------------------------- */

static uint64_t tail_of(const struct inode *inode)
{
	return inode->size % BLOCK_BYTES;
}

static uint64_t body_at(const struct inode *inode)
{
	return inode->at + sizeof(struct erofs_inode) + inode->attributes.length;
}

/* The rest of a directory or link lies behind its inode when it fits into what is left of a block, or into a fresh one. */
static bool place_inline(struct inode *inode)
{
	uint64_t tail = tail_of(inode);
	if (tail == 0)
		return false;
	if (body_at(inode) % BLOCK_BYTES + tail > BLOCK_BYTES)
		inode->at = align(align(body_at(inode), BLOCK_BYTES) - sizeof(struct erofs_inode) - inode->attributes.length, EROFS_SLOT_BYTES);
	if (body_at(inode) % BLOCK_BYTES + tail > BLOCK_BYTES)
		return false;
	cursor = body_at(inode) + tail;
	return true;
}

static void place(struct inode *inode)
{
	if (inode->at)
		return; /* another name of it came before */
	if (S_ISDIR(inode->mode))
		inode->size = directory_size(inode);
	inode->number = ++inode_count;
	inode->at = align(cursor, EROFS_SLOT_BYTES);
	inode->layout = EROFS_LAYOUT_PLAIN;
	if (inode->chunk_count > 0) {
		inode->layout = EROFS_LAYOUT_CHUNKED;
		cursor = align(body_at(inode), sizeof(struct erofs_chunk)) + inode->chunk_count * sizeof(struct erofs_chunk);
	} else if ((S_ISDIR(inode->mode) || S_ISLNK(inode->mode)) && place_inline(inode))
		inode->layout = EROFS_LAYOUT_INLINE;
	else
		cursor = body_at(inode);
	for (uint32_t i = 0; i < inode->entry_count; i++)
		place(inode->entries[i].inode);
}

/* Blocks of their own for what does not lie beside its inode; known when every inode has its place. */
static void place_blocks(struct inode *inode)
{
	if (inode->data_block == 0 && (S_ISDIR(inode->mode) || S_ISLNK(inode->mode))) {
		uint64_t blocks = inode->layout == EROFS_LAYOUT_INLINE ? inode->size / BLOCK_BYTES : align(inode->size, BLOCK_BYTES) / BLOCK_BYTES;
		inode->data_block = (uint32_t)next_block;
		next_block += blocks;
	}
	for (uint32_t i = 0; i < inode->entry_count; i++)
		place_blocks(inode->entries[i].inode);
}

static void note_devices(const struct inode *inode)
{
	for (uint32_t i = 0; i < inode->chunk_count; i++)
		if (inode->chunks[i].block != EROFS_HOLE)
			device_numbers[inode->chunks[i].device] = 1;
	for (uint32_t i = 0; i < inode->entry_count; i++)
		note_devices(inode->entries[i].inode);
}

/* Writing ----------------------------------------------------------------------------------------------------- */

static void write_chunks(const struct inode *inode)
{
	struct erofs_chunk *to = (struct erofs_chunk *)(image + align(body_at(inode), sizeof *to));
	for (uint32_t i = 0; i < inode->chunk_count; i++) {
		struct chunk_at at = inode->chunks[i];
		to[i] = (struct erofs_chunk){0, at.block == EROFS_HOLE ? 0 : device_numbers[at.device], at.block};
	}
}

/* `at`: the byte of the content that comes next; what belongs inline goes behind the inode. */
static uint8_t *content_place(const struct inode *inode, uint64_t at)
{
	bool is_tail = inode->layout == EROFS_LAYOUT_INLINE && at >= inode->size - tail_of(inode);
	return image + (is_tail ? body_at(inode) : (uint64_t)inode->data_block * BLOCK_BYTES + at);
}

static void write_directory(const struct inode *directory)
{
	uint32_t count, from = 0;
	struct listed *all = list(directory, &count);
	for (uint64_t at = 0; from < count; at += BLOCK_BYTES) {
		size_t used;
		uint32_t filled = fill_block(all, from, count, &used);
		write_block(content_place(directory, at), all + from, filled);
		from += filled;
	}
	free(all);
}

static void write_inode(struct inode *inode)
{
	bool has_device = S_ISCHR(inode->mode) || S_ISBLK(inode->mode);
	struct erofs_inode disk = {
		.format = (uint16_t)(EROFS_FORMAT_EXTENDED | inode->layout << 1),
		.xattr_count = inode->attributes.length ? (uint16_t)((inode->attributes.length - sizeof(struct erofs_xattr_header)) / 4 + 1) : 0,
		.mode = (uint16_t)inode->mode, .size = inode->size, .number = inode->number, .uid = inode->uid, .gid = inode->gid,
		.u = has_device ? inode->device : inode->chunk_count ? (EROFS_CHUNK_INDEXES | __builtin_ctz(CHUNK_BLOCKS)) : inode->data_block,
		.mtime = (uint64_t)inode->mtime, .mtime_ns = inode->mtime_ns, .nlink = inode->links,
	};
	memcpy(image + inode->at, &disk, sizeof disk);
	if (inode->attributes.length)
		memcpy(image + inode->at + sizeof disk, inode->attributes.bytes, inode->attributes.length);
	if (inode->chunk_count)
		write_chunks(inode);
	else if (S_ISDIR(inode->mode))
		write_directory(inode);
	else if (S_ISLNK(inode->mode))
		memcpy(content_place(inode, 0), inode->target, inode->size);
	for (uint32_t i = 0; i < inode->entry_count; i++)
		write_inode(inode->entries[i].inode);
}

static void number_devices(void)
{
	for (int i = 0; i < data_device_count(); i++)
		if (device_numbers[i])
			device_numbers[i] = (uint16_t)++device_count;
}

static void write_super(const struct inode *root, const uint8_t uuid[16], uint64_t blocks)
{
	struct erofs_super super = {
		.magic = EROFS_MAGIC, .feature_compat = EROFS_COMPAT_MTIME, .block_bits = (uint8_t)__builtin_ctz(BLOCK_BYTES),
		.root_nid = (uint16_t)(root->at / EROFS_SLOT_BYTES), .inodes = inode_count, .blocks = (uint32_t)blocks,
		.feature_incompat = EROFS_INCOMPAT_CHUNKED_FILE | (device_count > 0 ? EROFS_INCOMPAT_DEVICE_TABLE : 0),
		.extra_devices = (uint16_t)device_count,
		.device_slot_offset = (EROFS_SUPER_OFFSET + sizeof super) / sizeof(struct erofs_device),
	};
	memcpy(super.uuid, uuid, sizeof super.uuid);
	memcpy(image + EROFS_SUPER_OFFSET, &super, sizeof super);
	struct erofs_device *slot = (struct erofs_device *)(image + EROFS_SUPER_OFFSET + sizeof super);
	for (int i = 0; i < data_device_count(); i++)
		if (device_numbers[i]) {
			struct erofs_device device = {.blocks = data_blocks(i)};
			memcpy(device.tag, data_tag(i), sizeof device.tag);
			*slot++ = device;
		}
}

void image_write(const char *file, struct inode *root, const uint8_t uuid[16], char digest[65])
{
	note_devices(root);
	number_devices();
	cursor = EROFS_SUPER_OFFSET + sizeof(struct erofs_super) + (uint64_t)device_count * sizeof(struct erofs_device);
	place(root);
	next_block = align(cursor, BLOCK_BYTES) / BLOCK_BYTES;
	place_blocks(root);
	uint64_t bytes = next_block * BLOCK_BYTES;
	image = must(calloc(1, bytes));
	write_super(root, uuid, next_block);
	write_inode(root);
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		fail("make image");
	for (uint64_t done = 0; done < bytes;) {
		ssize_t put = write(fd, image + done, bytes - done);
		if (put < 0 && errno != EINTR)
			fail("write image");
		done += put > 0 ? (uint64_t)put : 0;
	}
	close(fd);
	digest_of(image, bytes, digest);
}
