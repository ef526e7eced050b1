#include "tree.h"

#include "limits.h"
#include "report.h"
#include "scrub.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Hard links: inodes with more than one name, by number. */
static struct inode **linked;
static size_t linked_room, linked_count;

static struct tree_counts *counts;
static uint32_t first_id;
static char path[(DEPTH_MAX + 2) * 256 + 1]; /* of what is being looked at, for rules and refusals */
static uint8_t *buffer;

static struct inode **linked_place(uint64_t key)
{
	size_t at = key * 0x9e3779b97f4a7c15ull >> 20;
	for (;; at++)
		if (!linked[at % linked_room] || linked[at % linked_room]->key == key)
			return &linked[at % linked_room];
}

static void remember_linked(struct inode *inode)
{
	if (linked_count * 2 >= linked_room) {
		struct inode **old = linked;
		size_t old_room = linked_room;
		linked_room = old_room ? old_room * 2 : 1024;
		linked = must(calloc(linked_room, sizeof *linked));
		for (size_t i = 0; i < old_room; i++)
			if (old[i])
				*linked_place(old[i]->key) = old[i];
		free(old);
	}
	*linked_place(inode->key) = inode;
	linked_count++;
}

/* A deletion mark: made by the overlay, so it belongs to nobody. */
static bool is_whiteout(const struct stat *status)
{
	return S_ISCHR(status->st_mode) && status->st_rdev == 0;
}

static uint32_t own(uint32_t id)
{
	if (id - first_id >= ID_RANGE_SIZE)
		refuse(path, "it belongs to an id of the host that is not the sandbox's");
	return id - first_id;
}

static struct inode *inode_of(const struct stat *status, const char *real)
{
	struct inode *inode = must(calloc(1, sizeof *inode));
	bool whiteout = is_whiteout(status);
	inode->key = status->st_ino;
	inode->mode = whiteout ? S_IFCHR : status->st_mode;
	inode->uid = whiteout ? 0 : own(status->st_uid);
	inode->gid = whiteout ? 0 : own(status->st_gid);
	inode->links = 1;
	inode->device = (uint32_t)(minor(status->st_rdev) & 0xff) | (uint32_t)major(status->st_rdev) << 8 | (uint32_t)(minor(status->st_rdev) & ~0xffu) << 12;
	inode->mtime = whiteout ? 0 : status->st_mtim.tv_sec;
	inode->mtime_ns = whiteout ? 0 : (uint32_t)status->st_mtim.tv_nsec;
	if (!whiteout)
		inode->attributes = attributes_read(real, path, first_id);
	if (++counts->files > FILES_MAX)
		refuse(path, "there are more files than one snapshot can hold");
	return inode;
}

/* Bytes from `at` to the next hole or `end`, rounded out to whole chunks. */
static void read_range(int fd, struct inode *inode, uint64_t at, uint64_t end)
{
	while (at < end) {
		size_t wanted = end - at < READ_BYTES ? (size_t)(end - at) : READ_BYTES, got = 0;
		while (got < wanted) {
			ssize_t part = pread(fd, buffer + got, wanted - got, (off_t)(at + got));
			if (part < 0)
				fail("read a file");
			if (part == 0)
				refuse(path, "it changed while it was read");
			got += (size_t)part;
		}
		for (size_t done = 0; done < got; done += CHUNK_BYTES) {
			uint32_t length = got - done < CHUNK_BYTES ? (uint32_t)(got - done) : CHUNK_BYTES;
			inode->chunks[(at + done) / CHUNK_BYTES] = data_put(buffer + done, length);
		}
		at += got;
	}
}

/* Whole blocks of `at` to `end` are shared, what is left of the last one is read. False when the file system shares nothing. */
static bool share_range(int fd, struct inode *inode, uint64_t at, uint64_t end)
{
	uint32_t block, tail = (uint32_t)(end % BLOCK_BYTES);
	if (!data_clone(fd, at, end - tail - at, &block))
		return false;
	if (tail > 0) {
		if (pread(fd, buffer, tail, (off_t)(end - tail)) != (ssize_t)tail)
			refuse(path, "it changed while it was read");
		data_append_tail(buffer, tail);
	}
	for (uint64_t chunk = at / CHUNK_BYTES; chunk * CHUNK_BYTES < end; chunk++, block += CHUNK_BLOCKS)
		inode->chunks[chunk] = data_at(block);
	return true;
}

static void read_file(int dir, const char *name, struct inode *inode, uint64_t size)
{
	inode->size = size;
	if (size == 0)
		return;
	if (size > 1ull << 40)
		refuse(path, "it is larger than 1 TiB");
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME | O_CLOEXEC);
	if (fd < 0)
		fail("open a file");
	inode->chunk_count = (uint32_t)((size + CHUNK_BYTES - 1) / CHUNK_BYTES);
	inode->chunks = must(malloc(inode->chunk_count * sizeof *inode->chunks));
	for (uint32_t i = 0; i < inode->chunk_count; i++)
		inode->chunks[i] = (struct chunk_at){0, UINT32_MAX};
	for (off_t start = 0, hole; (start = lseek(fd, start, SEEK_DATA)) >= 0 && (uint64_t)start < size; start = hole) {
		if ((hole = lseek(fd, start, SEEK_HOLE)) < 0)
			fail("look for holes");
		start -= start % CHUNK_BYTES;
		hole = (hole + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
		uint64_t end = (uint64_t)hole < size ? (uint64_t)hole : size;
		if (end - (uint64_t)start < SHARE_BYTES_MIN || !share_range(fd, inode, (uint64_t)start, end))
			read_range(fd, inode, (uint64_t)start, end);
	}
	counts->bytes += size;
	close(fd);
}

static void read_link(int dir, const char *name, struct inode *inode)
{
	char target[BLOCK_BYTES];
	ssize_t length = readlinkat(dir, name, target, sizeof target);
	if (length < 0)
		fail("read a link");
	if (length == sizeof target)
		refuse(path, "its target is longer than a path can be");
	target[length] = '\0';
	inode->target = must(strdup(target));
	inode->size = (uint64_t)length;
}

static struct inode *read_directory(int fd, struct inode *parent, size_t path_length, int depth);

static struct inode *read_entry(int dir, const char *name, struct inode *parent, size_t path_length, int depth)
{
	struct stat status;
	char real[64 + 256];
	if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		fail("look at a file");
	if (S_ISDIR(status.st_mode)) {
		int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
		if (fd < 0)
			fail("open a directory");
		return read_directory(fd, parent, path_length, depth);
	}
	if (status.st_nlink > 1 && !is_whiteout(&status) && linked_room > 0) {
		struct inode *known = *linked_place(status.st_ino);
		if (known) {
			known->links++;
			return known;
		}
	}
	snprintf(real, sizeof real, "/proc/self/fd/%d/%s", dir, name);
	struct inode *inode = inode_of(&status, real);
	if (S_ISREG(status.st_mode))
		read_file(dir, name, inode, (uint64_t)status.st_size);
	else if (S_ISLNK(status.st_mode))
		read_link(dir, name, inode);
	if (status.st_nlink > 1 && !is_whiteout(&status)) /* the overlay makes all deletion marks links of one file */
		remember_linked(inode);
	return inode;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void list_names(int fd, struct inode *directory)
{
	DIR *stream = fdopendir(dup(fd));
	uint32_t room = 0;
	if (!stream)
		fail("list a directory");
	for (struct dirent *found; errno = 0, (found = readdir(stream));) {
		if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
			continue;
		if (directory->entry_count == room) {
			room = room ? room * 2 : 16;
			directory->entries = must(realloc(directory->entries, room * sizeof *directory->entries));
		}
		directory->entries[directory->entry_count++].name = must(strdup(found->d_name));
	}
	if (errno)
		fail("list a directory");
	closedir(stream);
	if (directory->entry_count > 1)
		qsort(directory->entries, directory->entry_count, sizeof *directory->entries, by_name);
}

static bool is_removed(void)
{
	const char *rule = scrub_match(path);
	if (rule && counts->removed++ < REMOVED_TOLD_MAX)
		say_removed(rule, path);
	return rule != NULL;
}

/* Takes the descriptor. `path` holds the directory's own, `path_length` bytes. */
static struct inode *read_directory(int fd, struct inode *parent, size_t path_length, int depth)
{
	struct stat status;
	char real[64];
	if (depth > DEPTH_MAX)
		refuse(path, "it lies deeper than a snapshot can hold");
	if (fstat(fd, &status) < 0)
		fail("look at a directory");
	snprintf(real, sizeof real, "/proc/self/fd/%d/.", fd);
	struct inode *directory = inode_of(&status, real);
	directory->parent = parent ? parent : directory;
	list_names(fd, directory);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < directory->entry_count; i++) {
		struct entry entry = directory->entries[i];
		size_t length = path_length + (size_t)snprintf(path + path_length, 258, "/%s", entry.name);
		if (is_removed()) {
			free(entry.name);
			continue;
		}
		entry.inode = read_entry(fd, entry.name, directory, length, depth + 1);
		directory->directories += S_ISDIR(entry.inode->mode);
		directory->entries[kept++] = entry;
	}
	path[path_length] = '\0';
	directory->entry_count = kept;
	directory->links = 2 + directory->directories;
	close(fd);
	return directory;
}

struct inode *tree_read(int upper, uint32_t first, struct tree_counts *into)
{
	counts = into;
	first_id = first;
	buffer = must(malloc(READ_BYTES));
	return read_directory(upper, NULL, 0, 0);
}
