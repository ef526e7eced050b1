#include "files_watches.h"

#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { LIST_FIRST = 16 };

/* Where `watch` is or belongs. */
static size_t find(const struct watches *watches, int watch)
{
	size_t from = 0, to = watches->count;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (watches->list[middle].watch < watch)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static int make_room(struct watches *watches)
{
	if (watches->count < watches->capacity)
		return 0;
	size_t capacity = watches->capacity ? 2 * watches->capacity : LIST_FIRST;
	struct watched *grown = realloc(watches->list, capacity * sizeof *grown);
	if (!grown)
		return -1;
	watches->list = grown;
	watches->capacity = capacity;
	return 0;
}

int watches_add(struct watches *watches, const char *path, unsigned mask)
{
	if (watches->count >= WATCHES_MAX) {
		errno = EMFILE;
		return -1;
	}
	char *copy = strdup(path);
	if (!copy || make_room(watches) < 0) {
		free(copy);
		return -1;
	}
	int watch = inotify_add_watch(watches->inotify, *path ? path : ".", mask);
	if (watch < 0) {
		free(copy);
		return -1;
	}
	size_t at = find(watches, watch);
	if (at < watches->count && watches->list[at].watch == watch) { /* the same directory again, by another name since */
		free(watches->list[at].path);
		watches->list[at].path = copy;
		return 0;
	}
	memmove(&watches->list[at + 1], &watches->list[at], (watches->count - at) * sizeof *watches->list);
	watches->list[at] = (struct watched){watch, copy};
	watches->count++;
	return 0;
}

const char *watches_path(const struct watches *watches, int watch)
{
	size_t at = find(watches, watch);
	return at < watches->count && watches->list[at].watch == watch ? watches->list[at].path : NULL;
}

static void drop_at(struct watches *watches, size_t at)
{
	free(watches->list[at].path);
	watches->count--;
	memmove(&watches->list[at], &watches->list[at + 1], (watches->count - at) * sizeof *watches->list);
}

void watches_drop(struct watches *watches, int watch)
{
	size_t at = find(watches, watch);
	if (at < watches->count && watches->list[at].watch == watch)
		drop_at(watches, at);
}

void watches_drop_below(struct watches *watches, const char *path)
{
	size_t length = strlen(path);
	for (size_t at = watches->count; at-- > 0;) {
		const char *known = watches->list[at].path;
		if (strncmp(known, path, length) != 0 || (known[length] != '\0' && known[length] != '/'))
			continue;
		(void)inotify_rm_watch(watches->inotify, watches->list[at].watch); /* gone already is as good */
		drop_at(watches, at);
	}
}

void watches_free(struct watches *watches)
{
	while (watches->count > 0)
		drop_at(watches, watches->count - 1);
	free(watches->list);
	if (watches->inotify >= 0)
		close(watches->inotify);
	*watches = (struct watches){.inotify = -1};
}
