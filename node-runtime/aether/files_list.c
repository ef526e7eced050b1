/* LIST: the entries of a directory as records, in the directory's order, however many there are. */
#include "files_entry.h"
#include "files_request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static enum channel_result put(int directory, const char *name, uint64_t *entries)
{
	char target[PATH_MAX];
	struct stat status;
	ssize_t length = 0;
	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return CHANNEL_OK; /* removed since */
	if (S_ISLNK(status.st_mode) && (length = readlinkat(directory, name, target, sizeof target)) < 0)
		length = 0;
	size_t name_length = strlen(name);
	struct file_entry_body body = entry_of(&status, name_length, (size_t)length);
	(*entries)++;
	if (stream_write(&body, sizeof body) != CHANNEL_OK || stream_write(name, name_length) != CHANNEL_OK)
		return CHANNEL_GONE;
	return stream_write(target, (size_t)length);
}

enum channel_result files_list(const struct channel_frame *frame)
{
	const char *path = request_text(frame, "path");
	if (!path)
		return CHANNEL_MALFORMED;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		int problem = errno;
		if (fd >= 0)
			close(fd);
		return channel_fail(problem);
	}
	uint64_t entries = 0;
	enum channel_result result = CHANNEL_OK;
	struct dirent *found;
	stream_begin();
	while (result == CHANNEL_OK && (errno = 0, found = readdir(stream)))
		if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0)
			result = put(dirfd(stream), found->d_name, &entries);
	int problem = errno;
	closedir(stream);
	if (result != CHANNEL_OK || stream_flush() != CHANNEL_OK)
		return CHANNEL_GONE;
	return problem ? channel_fail(problem) : channel_end(stream_total(), entries, 0);
}
