#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void close_fd(int *fd)
{
	int kept = errno;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = kept;
}

int write_control(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	size_t length = strlen(text);
	ssize_t written = write(fd, text, length);
	close_fd(&fd);
	if (written >= 0 && (size_t)written != length) {
		errno = EIO;
		return -1;
	}
	return written < 0 ? -1 : 0;
}

int write_control_number(int dir, const char *path, unsigned long long number)
{
	char text[24];
	snprintf(text, sizeof text, "%llu", number);
	return write_control(dir, path, text);
}

ssize_t read_text(int dir, const char *path, char *out, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t got = read(fd, out, size - 1);
	close_fd(&fd);
	if (got >= 0)
		out[got] = '\0';
	return got;
}

int ensure_dir(int dir, const char *path, mode_t mode)
{
	return mkdirat(dir, path, mode) < 0 && errno != EEXIST ? -1 : 0;
}

int open_dir(int dir, const char *path, mode_t mode)
{
	if (ensure_dir(dir, path, mode) < 0)
		return -1;
	return openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int replace_file(int dir, const char *name, const void *bytes, size_t length)
{
	char aside[256];
	if ((size_t)snprintf(aside, sizeof aside, ".%s", name) >= sizeof aside) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int fd = openat(dir, aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	ssize_t written = write(fd, bytes, length);
	close_fd(&fd);
	if (written >= 0 && (size_t)written < length)
		errno = ENOSPC;
	if (written < 0 || (size_t)written < length || renameat(dir, aside, dir, name) < 0) {
		int kept = errno;
		unlinkat(dir, aside, 0);
		errno = kept;
		return -1;
	}
	return 0;
}

bool file_exists(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, 0) == 0;
}

int each_name(int dir, int (*visit)(const char *name, void *context), void *context)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (copy < 0)
		return -1;
	DIR *stream = fdopendir(copy);
	if (!stream) {
		close_fd(&copy);
		return -1;
	}
	int answer = 0;
	for (struct dirent *entry; answer == 0 && (entry = readdir(stream));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			answer = visit(entry->d_name, context);
	closedir(stream);
	return answer;
}
