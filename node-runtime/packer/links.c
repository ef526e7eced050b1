#include "links.h"

#include "limits.h"
#include "report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An indexed file: its number in the layer below, by which the merged tree calls it, and what that shows of the file itself. */
struct indexed {
	uint64_t number;
	struct timespec changed;
	int64_t size;
};

static struct indexed *files;
static size_t file_count, file_room;

/*
 * An entry's name spells a file handle: five bytes of header, the layer's UUID, then EROFS' own part: the number's upper half, its
 * lower half, a generation, each as it lies in memory.
 */
enum { HANDLE_NUMBER_AT = 2 * (5 + 16), HALF_BYTES = 4 };

static bool half_of(const char *digits, uint64_t *half)
{
	*half = 0;
	for (int i = HALF_BYTES - 1; i >= 0; i--) {
		unsigned byte;
		if (sscanf(digits + 2 * i, "%2x", &byte) != 1)
			return false;
		*half = *half << 8 | byte;
	}
	return true;
}

static bool number_of(const char *name, uint64_t *number)
{
	uint64_t upper, lower;
	if (strlen(name) < HANDLE_NUMBER_AT + 4 * HALF_BYTES || !half_of(name + HANDLE_NUMBER_AT, &upper) || !half_of(name + HANDLE_NUMBER_AT + 2 * HALF_BYTES, &lower))
		return false;
	*number = upper << 32 | lower;
	return true;
}

static void note(const char *name, const struct stat *status)
{
	uint64_t number;
	if (!S_ISREG(status->st_mode) || !number_of(name, &number))
		return; /* a deleted directory, or the overlay's own */
	if (file_count == file_room) {
		file_room = file_room ? file_room * 2 : 64;
		files = must(realloc(files, file_room * sizeof *files));
	}
	files[file_count++] = (struct indexed){number, status->st_ctim, status->st_size};
}

static void read_index(int work)
{
	int fd = openat(work, "index", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream)
		fail("look into the index");
	for (struct dirent *entry; (entry = readdir(stream));) {
		struct stat status;
		if (entry->d_name[0] != '.' && fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			note(entry->d_name, &status);
	}
	closedir(stream);
}

/* Taken for one of them by mistake, a file is only copied up without need. */
static struct indexed *find(const struct stat *status)
{
	for (size_t i = 0; i < file_count; i++)
		if (files[i].number == status->st_ino && files[i].size == status->st_size && files[i].changed.tv_sec == status->st_ctim.tv_sec &&
		    files[i].changed.tv_nsec == status->st_ctim.tv_nsec)
			return &files[i];
	return NULL;
}

static void complete_in(int directory, dev_t overlay, int depth);

static void complete_entry(int directory, const char *name, dev_t overlay, int depth)
{
	struct stat status;
	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		fail("look at a file");
	if (S_ISDIR(status.st_mode)) {
		if (status.st_dev == overlay && depth < DEPTH_MAX) /* and not into what is mounted there */
			complete_in(openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC), overlay, depth + 1);
		return;
	}
	struct indexed *file = S_ISREG(status.st_mode) ? find(&status) : NULL;
	if (!file)
		return;
	char path[40];
	int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	/* nothing changes but that the overlay takes this name into the upper; opening it for writing would fail while it is executed */
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || chmod(path, status.st_mode & 07777) < 0 || fstat(fd, &status) < 0)
		fail("complete hard links");
	file->changed = status.st_ctim;
	close(fd);
}

/* Takes the descriptor. */
static void complete_in(int directory, dev_t overlay, int depth)
{
	DIR *stream = directory < 0 ? NULL : fdopendir(directory);
	if (!stream)
		fail("look for hard links");
	for (struct dirent *entry; (entry = readdir(stream));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && (entry->d_type == DT_DIR || entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN))
			complete_entry(directory, entry->d_name, overlay, depth);
	closedir(stream);
}

void links_complete(int work, const char *merged)
{
	read_index(work);
	if (file_count == 0)
		return;
	struct stat status;
	int root = open(merged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || fstat(root, &status) < 0)
		fail("look at the sandbox's tree");
	complete_in(root, status.st_dev, 0);
}
