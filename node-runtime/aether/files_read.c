/*
 * READ: bytes of a file until its end or a limit, whatever size it claims to have: files of the kernel say 0.
 *
 * Nothing is waited for: a FIFO, a socket or a terminal is refused, and a character device is read only as far as a limit says.
 */
#include "files_entry.h"
#include "files_request.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const uint64_t NO_LIMIT = UINT64_MAX / 2;

/* What it is is asked before it is opened: opening alone wakes the writer of a FIFO and makes a terminal of /dev/ptmx. 0, or -1. */
static int open_readable(const char *path, int devices, int *fd, struct stat *status, enum file_reason *reason)
{
	*reason = REASON_ERRNO;
	*fd = -1;
	if (stat(path, status) < 0)
		return -1;
	if (S_ISDIR(status->st_mode)) {
		errno = EISDIR;
		return -1;
	}
	*reason = REASON_NOT_REGULAR;
	if (!S_ISREG(status->st_mode) && !(S_ISCHR(status->st_mode) && devices))
		return -1;
	*fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (*fd < 0 && (errno == ENXIO || errno == ENODEV)) /* a device that nothing answers for */
		return -1;
	*reason = REASON_ERRNO;
	return *fd < 0 ? -1 : fstat(*fd, status);
}

/* Skips to `offset`. A file that cannot seek is read up to there. 0, or -1 with errno. */
static int skip(int fd, uint64_t offset)
{
	if (offset == 0 || lseek(fd, (off_t)offset, SEEK_SET) >= 0)
		return 0;
	while (offset > 0) {
		size_t room;
		uint8_t *to = stream_room(1, &room);
		ssize_t got = to ? read(fd, to, room < offset ? room : (size_t)offset) : -1;
		if (got <= 0)
			return got == 0 ? 0 : -1;
		offset -= (uint64_t)got;
	}
	return 0;
}

/* A device that has nothing to say now is one that would be waited for. */
static enum channel_result fail_reading(int problem, int is_device)
{
	if (stream_flush() != CHANNEL_OK)
		return CHANNEL_GONE;
	return channel_fail_at(is_device ? REASON_NOT_REGULAR : REASON_ERRNO, problem, NULL);
}

static enum channel_result copy(int fd, uint64_t limit, int is_device)
{
	while (limit > 0) {
		size_t room;
		uint8_t *to = stream_room(1, &room);
		if (!to)
			return CHANNEL_GONE;
		ssize_t got = read(fd, to, room < limit ? room : (size_t)limit);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_reading(errno, is_device);
		if (got == 0)
			break;
		limit -= (uint64_t)got;
		if (stream_fill((size_t)got) != CHANNEL_OK)
			return CHANNEL_GONE;
	}
	return stream_flush() == CHANNEL_OK ? channel_end(stream_total(), 1, 0) : CHANNEL_GONE;
}

/* Answers with the file's ENTRY, then DATA, then END. */
enum channel_result files_read(const struct channel_frame *frame)
{
	const char *path = request_text(frame, "path");
	uint64_t offset, limit;
	struct stat status;
	enum file_reason reason;
	int fd;
	if (!path || request_number(frame, "offset", 0, NO_LIMIT, &offset) < 0 || request_number(frame, "limit", NO_LIMIT, NO_LIMIT, &limit) < 0)
		return CHANNEL_MALFORMED;
	enum channel_result result;
	stream_begin();
	if (open_readable(path, request_flag(frame, "devices") && limit != NO_LIMIT, &fd, &status, &reason) < 0 || skip(fd, offset) < 0)
		result = channel_fail_at(reason, errno, NULL);
	else if ((result = entry_answer(&status, NULL)) == CHANNEL_OK)
		result = copy(fd, limit, S_ISCHR(status.st_mode));
	if (fd >= 0)
		close(fd);
	return result;
}
