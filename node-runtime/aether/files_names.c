/* STAT, MKDIR and MOVE: one name, one answer. */
#include "files_entry.h"
#include "files_path.h"
#include "files_request.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum channel_result files_stat(const struct channel_frame *frame)
{
	const char *path = request_text(frame, "path");
	char target[PATH_BYTES] = "";
	struct stat status;
	if (!path)
		return CHANNEL_MALFORMED;
	if (fstatat(AT_FDCWD, path, &status, request_flag(frame, "follow") ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return channel_fail(errno);
	if (S_ISLNK(status.st_mode)) {
		ssize_t length = readlinkat(AT_FDCWD, path, target, sizeof target - 1);
		target[length < 0 ? 0 : length] = '\0'; /* replaced since: an entry without a target */
	}
	return entry_answer(&status, target);
}

/* The mode is exact: this process has no umask. 0, or -1 with errno. */
static int make_directory(const char *path, mode_t mode, int parents)
{
	struct stat status;
	int made = mkdir(path, mode);
	if (made < 0 && errno == ENOENT && parents)
		made = make_parents(path) < 0 ? -1 : mkdir(path, mode);
	if (made == 0 && mode & ~0777u)
		return chmod(path, mode); /* mkdir(2) takes permission bits only */
	if (made < 0 && errno == EEXIST && parents && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
		return 0;
	return made;
}

enum channel_result files_mkdir(const struct channel_frame *frame)
{
	const char *path = request_text(frame, "path");
	mode_t mode;
	struct stat status;
	if (!path || request_mode(frame, 0755, &mode) < 0)
		return CHANNEL_MALFORMED;
	if (make_directory(path, mode, request_flag(frame, "parents")) < 0 || stat(path, &status) < 0)
		return channel_fail(errno);
	return entry_answer(&status, NULL);
}

static int move(const struct place *from, const struct place *to, int replace)
{
	unsigned flags = replace ? 0 : RENAME_NOREPLACE;
	return (int)syscall(SYS_renameat2, from->directory, from->name, to->directory, to->name, flags);
}

/* Within one file system, as rename(2): at once or not at all. EXDEV is the caller's to tell. */
enum channel_result files_move(const struct channel_frame *frame)
{
	const char *from_path = request_text(frame, "from"), *to_path = request_text(frame, "to");
	struct place from, to;
	if (!from_path || !to_path)
		return CHANNEL_MALFORMED;
	if (place_find(from_path, &from) < 0)
		return channel_fail_at(REASON_ERRNO, errno, from_path);
	int problem = place_find(to_path, &to) < 0 ? errno : 0;
	const char *blamed = to_path;
	if (!problem && move(&from, &to, request_flag(frame, "replace")) < 0) {
		struct stat status;
		problem = errno;
		if (problem == ENOENT && fstatat(from.directory, from.name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			blamed = from_path;
	}
	place_close(&from);
	place_close(&to);
	return problem ? channel_fail_at(REASON_ERRNO, problem, blamed) : channel_end(0, 1, 0);
}
