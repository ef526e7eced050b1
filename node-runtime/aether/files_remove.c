/* REMOVE: a file, an empty directory, or a whole tree. What was removed before an error stays removed. */
#include "files_path.h"
#include "files_request.h"
#include "files_walk.h"
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct removal {
	const struct place *place;
	uint64_t removed, flattened;
	int top; /* the tree's own directory, for what lies too deep below it */
	int gone; /* nobody waits any more */
};

/* A directory below the deepest level is moved up to the top, where the next round finds it. */
static int move_up(struct removal *removal, const struct walk_entry *entry)
{
	char name[40];
	snprintf(name, sizeof name, ".dsec-removed-%llu", (unsigned long long)removal->flattened++);
	return renameat(entry->directory, entry->name, removal->top, name);
}

static int gone_already(void)
{
	return errno == ENOENT || errno == ENOTDIR;
}

/* Removes an entry, or enters it. 0, or -1 with errno. */
static int take_entry(struct removal *removal, struct walk *walk, const struct walk_entry *entry)
{
	if (unlinkat(entry->directory, entry->name, 0) == 0) {
		removal->removed++;
		return 0;
	}
	if (errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -1;
	if (unlinkat(entry->directory, entry->name, AT_REMOVEDIR) == 0) {
		removal->removed++;
		return 0;
	}
	if (walk_enter(walk) == 0 || gone_already())
		return 0;
	return errno == E2BIG ? move_up(removal, entry) : -1;
}

static int leave_entry(struct removal *removal, const struct walk_entry *entry)
{
	if (unlinkat(entry->directory, entry->name, AT_REMOVEDIR) == 0)
		removal->removed++;
	else if (!gone_already() && errno != ENOTEMPTY)
		return -1;
	return 0; /* filled again meanwhile: the next round's */
}

/* One walk through what is there. 0, or -1 with errno and the walk's path. */
static int remove_round(struct removal *removal, struct walk *walk)
{
	struct walk_entry entry;
	enum walk_event event;
	for (unsigned seen = 0; (event = walk_next(walk, &entry)) > 0; seen++) {
		if (event == WALK_ENTRY && take_entry(removal, walk, &entry) < 0)
			return -1;
		if (event == WALK_LEAVE && leave_entry(removal, &entry) < 0)
			return -1;
		if (seen % WALK_HANGUP_ENTRIES == 0 && channel_hung_up()) {
			removal->gone = 1;
			errno = ECANCELED;
			return -1;
		}
	}
	return event == WALK_FAILED ? -1 : 0;
}

static enum channel_result fail_below(const struct removal *removal, const char *path, const char *below, int problem)
{
	char whole[PATH_BYTES];
	if (removal->removed > 0 && channel_partial(0, removal->removed) != CHANNEL_OK)
		return CHANNEL_GONE;
	snprintf(whole, sizeof whole, "%s%s%s", path, *below ? "/" : "", below); /* cut when it is longer: it is a hint */
	return channel_fail_at(REASON_ERRNO, problem, whole);
}

static enum channel_result remove_tree(const struct place *place, const char *path)
{
	struct removal removal = {.place = place};
	for (int round = 0; round < REMOVE_ROUNDS_MAX; round++) {
		struct walk walk;
		removal.top = openat(place->directory, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (removal.top < 0 || walk_begin(&walk, removal.top) < 0)
			return channel_fail(errno);
		if (remove_round(&removal, &walk) < 0) {
			int problem = errno;
			enum channel_result result = removal.gone ? CHANNEL_GONE : fail_below(&removal, path, walk.path, problem);
			walk_end(&walk);
			return result;
		}
		walk_end(&walk);
		if (unlinkat(place->directory, place->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return channel_end(0, removal.removed + 1, 0);
		if (errno != ENOTEMPTY && errno != EEXIST)
			return fail_below(&removal, path, "", errno);
	}
	return fail_below(&removal, path, "", ENOTEMPTY);
}

enum channel_result files_remove(const struct channel_frame *frame)
{
	const char *path = request_text(frame, "path");
	struct place place;
	if (!path)
		return CHANNEL_MALFORMED;
	if (place_find(path, &place) < 0)
		return channel_fail(errno);
	enum channel_result result;
	if (unlinkat(place.directory, place.name, 0) == 0)
		result = channel_end(0, 1, 0);
	else if (errno != EISDIR)
		result = channel_fail(errno);
	else if (unlinkat(place.directory, place.name, AT_REMOVEDIR) == 0)
		result = channel_end(0, 1, 0);
	else if (errno == ENOTEMPTY && request_flag(frame, "recursive"))
		result = remove_tree(&place, path);
	else
		result = channel_fail(errno);
	place_close(&place);
	return result;
}
