/*
 * WRITE and APPEND.
 *
 * WRITE replaces a file as a whole: the new content lies in a file without a name until COMMIT, and takes the old one's mode,
 * owner and attributes before it takes its place. Until then, and when anything fails, the old file is as it was.
 */
#include "files_entry.h"
#include "files_path.h"
#include "files_request.h"
#include "files_sparse.h"
#include "files_temp.h"
#include "files_xattr.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { MODE_NEW = 0644, MODE_KEEP = 1 << 16 };

/* 0, or -1 with errno; 1 when the connection broke first. *written: what the kernel took, in any case. */
static int receive_into(int fd, struct upload *upload, int sparse, uint64_t *written)
{
	struct sparse_writer writer;
	const uint8_t *bytes;
	size_t length;
	int failed = 0;
	sparse_begin(&writer, fd, sparse);
	while (!failed && (length = upload_next(upload, SIZE_MAX, &bytes)) > 0)
		failed = sparse_write(&writer, bytes, length) < 0;
	*written = writer.written;
	if (failed)
		return -1;
	return upload->broken != CHANNEL_OK ? 1 : sparse_end(&writer);
}

/* What will be replaced; a mode of 0 says that nothing is there. 0, or -1 with errno and the reason. */
static int look_at_old(const struct place *place, struct stat *old, enum file_reason *reason)
{
	*reason = REASON_ERRNO;
	if (fstatat(place->directory, place->name, old, AT_SYMLINK_NOFOLLOW) < 0) {
		old->st_mode = 0;
		return errno == ENOENT ? 0 : -1;
	}
	if (S_ISREG(old->st_mode))
		return 0;
	errno = EISDIR;
	if (!S_ISDIR(old->st_mode))
		*reason = REASON_NOT_REGULAR;
	return -1;
}

/* Owner before mode, because a change of owner takes set-id bits away. 0, or -1 with errno. */
static int take_over(int fd, const struct place *place, const struct stat *old, mode_t mode)
{
	struct stat fresh;
	if (old->st_mode == 0)
		return fchmod(fd, mode == MODE_KEEP ? MODE_NEW : mode);
	if (fstat(fd, &fresh) < 0)
		return -1;
	if ((fresh.st_uid != old->st_uid || fresh.st_gid != old->st_gid) && fchown(fd, old->st_uid, old->st_gid) < 0)
		return -1;
	if (fchmod(fd, mode == MODE_KEEP ? old->st_mode & 07777 : mode) < 0)
		return -1;
	int from = openat(place->directory, place->name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0)
		return 0; /* not readable for this user: its attributes are not either */
	int result = xattr_copy(from, fd);
	close(from);
	return result;
}

/* A file that is a mount point (/etc/hosts, say) cannot be replaced. Its room is made sure of before a byte is changed. */
static int overwrite(int from, const struct place *place)
{
	struct stat status;
	int to = openat(place->directory, place->name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC), result = -1;
	if (to < 0)
		return -1;
	if (fstat(from, &status) == 0 && (status.st_size == 0 || fallocate(to, 0, 0, status.st_size) == 0))
		result = copy_bytes(from, to, 0, status.st_size) < 0 ? -1 : ftruncate(to, status.st_size);
	int problem = errno;
	close(to);
	errno = problem;
	return result;
}

/* 0 and *written, or -1 with errno. */
static int put_in_place(struct temp *temp, const struct place *place, const struct stat *old, mode_t mode, struct stat *written)
{
	if (take_over(temp->fd, place, old, mode) < 0)
		return -1;
	if (temp_commit(temp, place->name) == 0)
		return fstat(temp->fd, written);
	if (errno != EBUSY || overwrite(temp->fd, place) < 0)
		return -1;
	return fstatat(place->directory, place->name, written, AT_SYMLINK_NOFOLLOW);
}

static enum channel_result write_to(const struct channel_frame *frame, const struct place *place, mode_t mode)
{
	struct upload upload;
	struct temp temp;
	struct stat old, written;
	enum file_reason reason;
	int sparse = request_flag(frame, "sparse");
	uint64_t taken;
	upload_begin(&upload);
	if (look_at_old(place, &old, &reason) < 0)
		return upload_fail(&upload, reason, errno, NULL);
	if (temp_make(&temp, place->directory) < 0)
		return upload_fail(&upload, REASON_ERRNO, errno, NULL);
	enum channel_result result;
	int received = receive_into(temp.fd, &upload, sparse, &taken);
	if (received > 0)
		result = upload.broken;
	else if (received < 0 || put_in_place(&temp, place, &old, mode, &written) < 0)
		result = upload_fail(&upload, REASON_ERRNO, errno, NULL);
	else
		result = entry_answer(&written, NULL);
	temp_close(&temp);
	return result;
}

/* Where the file is or will be; directories above it are made when asked for. */
static int find_target(const struct channel_frame *frame, const char *path, struct place *place)
{
	if (place_follow(path, place) == 0)
		return 0;
	place_close(place);
	if (errno != ENOENT || !request_flag(frame, "parents") || make_parents(path) < 0)
		return -1;
	return place_follow(path, place);
}

enum channel_result files_write(const struct channel_frame *frame)
{
	const char *path = request_text(frame, "path");
	mode_t mode;
	struct place place;
	if (!path || request_mode(frame, MODE_KEEP, &mode) < 0)
		return CHANNEL_MALFORMED;
	if (find_target(frame, path, &place) < 0) {
		struct upload upload;
		int problem = errno;
		place_close(&place);
		upload_begin(&upload);
		return upload_fail(&upload, REASON_ERRNO, problem, NULL);
	}
	enum channel_result result = write_to(frame, &place, mode);
	place_close(&place);
	return result;
}

/* 0 and *fd, or -1. Nothing is waited for: special files are refused before they are opened. */
static int open_end(const char *path, mode_t mode, int *fd, enum file_reason *reason)
{
	struct stat status;
	*reason = REASON_ERRNO;
	*fd = -1;
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
		errno = EISDIR;
		if (!S_ISDIR(status.st_mode))
			*reason = REASON_NOT_REGULAR;
		return -1;
	}
	*fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode & 0777);
	return *fd < 0 ? -1 : 0;
}

/* Of an append that failed nothing is left, unless somebody else has appended meanwhile: theirs must not go with it. */
static void take_back(int fd, off_t old_size, uint64_t written)
{
	struct stat status;
	if (fstat(fd, &status) < 0 || status.st_size != old_size + (off_t)written)
		return;
	int result = ftruncate(fd, old_size);
	(void)result; /* the error that led here is the one to tell */
}

/* What came before a broken connection stays, as of any program that appends and is ended. */
enum channel_result files_append(const struct channel_frame *frame)
{
	const char *path = request_text(frame, "path");
	mode_t mode;
	enum file_reason reason;
	struct upload upload;
	struct stat status = {0};
	int fd;
	if (!path || request_mode(frame, MODE_NEW, &mode) < 0)
		return CHANNEL_MALFORMED;
	upload_begin(&upload);
	if (request_flag(frame, "parents") && access(path, F_OK) < 0 && errno == ENOENT)
		(void)make_parents(path); /* opening says what was wrong */
	uint64_t written = 0;
	int opened = open_end(path, mode, &fd, &reason);
	if (opened == 0 && fstat(fd, &status) < 0)
		opened = -1;
	off_t old_size = status.st_size;
	int received = opened < 0 ? -1 : receive_into(fd, &upload, 0, &written);
	int problem = errno;
	if (opened == 0 && received < 0)
		take_back(fd, old_size, written);
	errno = problem;
	enum channel_result result;
	if (received > 0)
		result = upload.broken;
	else if (received < 0 || fstat(fd, &status) < 0)
		result = upload_fail(&upload, reason, errno, NULL);
	else
		result = entry_answer(&status, NULL);
	if (fd >= 0)
		close(fd);
	return result;
}
