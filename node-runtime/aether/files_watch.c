/*
 * WATCH: what happens in a directory, or to a file, until the connection closes or the thing is gone. The kernel's queue is the
 * buffer: a reader that stays away makes it overflow, and is told so.
 */
#include "files_path.h"
#include "files_request.h"
#include "files_walk.h"
#include "files_watches.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENT_BYTES_MAX = sizeof(struct inotify_event) + 256, READ_BYTES = 64 * EVENT_BYTES_MAX };

static const unsigned WANTED = IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;
static const unsigned BELOW = IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK;

struct watching {
	struct watches watches;
	int recursive;
	int over; /* the top is gone */
};

static enum channel_result put_event(unsigned kind, uint32_t cookie, const char *path)
{
	size_t length = strnlen(path, 2 * PATH_BYTES - sizeof(struct file_event_body));
	struct file_event_body body = {.length = (uint16_t)(sizeof body + length), .kind = (uint16_t)kind, .cookie = cookie};
	if (stream_write(&body, sizeof body) != CHANNEL_OK)
		return CHANNEL_GONE;
	return stream_write(path, length);
}

/* `directory/name`; cut when it is longer than any path that the kernel takes. */
static void join(char out[2 * PATH_BYTES], const char *directory, const char *name)
{
	snprintf(out, 2 * PATH_BYTES, "%s%s%s", directory, *directory && *name ? "/" : "", name);
}

static enum channel_result add(struct watching *watching, const char *path)
{
	if (watches_add(&watching->watches, path, WANTED | BELOW) == 0 || errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
		return CHANNEL_OK;
	return put_event(EVENT_UNWATCHED | EVENT_DIRECTORY, 0, path);
}

/* All directories below one. `tell`: it is new, and so is what it holds already. */
static enum channel_result add_below(struct watching *watching, const char *path, int tell)
{
	struct walk walk;
	struct walk_entry found;
	struct stat status;
	char whole[2 * PATH_BYTES];
	enum channel_result result = CHANNEL_OK;
	int top = open(*path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (top < 0 || walk_begin(&walk, top) < 0)
		return CHANNEL_OK; /* gone again */
	for (enum walk_event event; result == CHANNEL_OK && (event = walk_next(&walk, &found)) > 0;) {
		if (event != WALK_ENTRY || fstatat(found.directory, found.name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		int is_directory = S_ISDIR(status.st_mode);
		join(whole, path, walk.path);
		if (tell)
			result = put_event(EVENT_CREATED | (is_directory ? EVENT_DIRECTORY : 0), 0, whole);
		if (result != CHANNEL_OK || !is_directory)
			continue;
		result = add(watching, whole);
		if (walk_enter(&walk) < 0 && errno == E2BIG && result == CHANNEL_OK)
			result = put_event(EVENT_UNWATCHED | EVENT_DIRECTORY, 0, whole);
	}
	walk_end(&walk);
	return result;
}

static unsigned kind_of(uint32_t mask)
{
	if (mask & IN_CREATE)
		return EVENT_CREATED;
	if (mask & IN_MODIFY)
		return EVENT_MODIFIED;
	if (mask & (IN_DELETE | IN_DELETE_SELF | IN_UNMOUNT))
		return EVENT_REMOVED;
	if (mask & (IN_MOVED_FROM | IN_MOVE_SELF))
		return EVENT_MOVED_FROM;
	return mask & IN_MOVED_TO ? EVENT_MOVED_TO : EVENT_ATTRIBUTES;
}

/* A directory below tells of itself what its own directory tells too. */
static int is_repeated(const struct inotify_event *event, const char *directory)
{
	return *directory != '\0' && event->len == 0;
}

static enum channel_result follow(struct watching *watching, uint32_t mask, const char *path)
{
	if (mask & (IN_MOVED_FROM | IN_DELETE))
		watches_drop_below(&watching->watches, path);
	if (!(mask & (IN_CREATE | IN_MOVED_TO)))
		return CHANNEL_OK;
	enum channel_result result = add(watching, path);
	return result == CHANNEL_OK ? add_below(watching, path, 1) : result;
}

static enum channel_result take(struct watching *watching, const struct inotify_event *event)
{
	char path[2 * PATH_BYTES];
	if (event->mask & IN_Q_OVERFLOW)
		return put_event(EVENT_OVERFLOW, 0, "");
	const char *directory = watches_path(&watching->watches, event->wd);
	if (!directory)
		return CHANNEL_OK; /* of a directory that was let go of */
	if (event->mask & IN_IGNORED) {
		watching->over |= *directory == '\0';
		watches_drop(&watching->watches, event->wd);
		return CHANNEL_OK;
	}
	if (is_repeated(event, directory))
		return CHANNEL_OK;
	join(path, directory, event->len > 0 ? event->name : "");
	watching->over |= (event->mask & IN_MOVE_SELF) != 0;
	enum channel_result result = put_event(kind_of(event->mask) | (event->mask & IN_ISDIR ? EVENT_DIRECTORY : 0), event->cookie, path);
	return result == CHANNEL_OK && watching->recursive && event->mask & IN_ISDIR && event->len > 0 ? follow(watching, event->mask, path) : result;
}

/* Everything that is there, in as few frames as it takes. */
static enum channel_result take_all(struct watching *watching)
{
	static union {
		struct inotify_event aligned;
		char bytes[READ_BYTES];
	} buffer;
	ssize_t length = read(watching->watches.inotify, &buffer, sizeof buffer);
	if (length < 0)
		return errno == EAGAIN || errno == EINTR ? CHANNEL_OK : CHANNEL_GONE;
	for (const char *at = buffer.bytes; at < buffer.bytes + length;) {
		const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
		if (take(watching, event) != CHANNEL_OK)
			return CHANNEL_GONE;
		at += sizeof *event + event->len;
	}
	return stream_flush();
}

static enum channel_result watch_until_over(struct watching *watching)
{
	enum channel_result result = put_event(EVENT_WATCHING, 0, "");
	if (result == CHANNEL_OK)
		result = stream_flush();
	while (result == CHANNEL_OK && !watching->over) {
		/* readable means closed: nothing is asked of a worker that watches */
		if (channel_wait(watching->watches.inotify) < 0)
			return CHANNEL_GONE;
		result = take_all(watching);
	}
	return result == CHANNEL_OK ? channel_end(stream_total(), 0, 0) : result;
}

/* Names are relative to the top, so the worker goes there: it is this watch's alone. 0, or -1 with errno. */
static int begin(struct watching *watching, const char *path)
{
	struct stat status;
	watching->watches.inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watching->watches.inotify < 0 || stat(path, &status) < 0)
		return -1;
	if (!S_ISDIR(status.st_mode)) {
		watching->recursive = 0;
		if (watches_add(&watching->watches, path, WANTED) < 0)
			return -1;
		watching->watches.list[0].path[0] = '\0';
		return 0;
	}
	return chdir(path) < 0 ? -1 : watches_add(&watching->watches, "", WANTED | IN_ONLYDIR | IN_EXCL_UNLINK);
}

enum channel_result files_watch(const struct channel_frame *frame)
{
	const char *path = request_text(frame, "path");
	struct watching watching = {.watches.inotify = -1, .recursive = request_flag(frame, "recursive")};
	if (!path)
		return CHANNEL_MALFORMED;
	stream_begin();
	enum channel_result result;
	if (begin(&watching, path) < 0)
		result = channel_fail(errno);
	else {
		result = watching.recursive ? add_below(&watching, "", 0) : CHANNEL_OK;
		if (result == CHANNEL_OK)
			result = watch_until_over(&watching);
	}
	watches_free(&watching.watches);
	return result;
}
