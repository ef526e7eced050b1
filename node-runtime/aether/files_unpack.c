/*
 * UNPACK: an archive into a directory.
 *
 * Every name is resolved beneath the destination and through no symbolic link, old or new. The first entry that would leave it, or
 * cannot be made, ends the work and is named; what came before stays. A file appears only when it is whole and takes the place of
 * what was there. Directories get their mode and time when the archive has left them. What is not carried is told.
 */
#include "files_path.h"
#include "files_request.h"
#include "files_unpacking.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The destination itself, as `./`: only what this upload has made is changed. */
static enum outcome unpack_root(struct unpacking *unpacking, struct entry_in *entry)
{
	if (entry->type != '5')
		return BAD;
	if (!unpacking->root_is_new)
		return DONE;
	const struct meta meta = meta_of(entry);
	entry->xattrs = (struct pax_buffer){0};
	return pending_push(&unpacking->pending, entry->path, &meta) < 0 ? FAILED : DONE;
}

static enum outcome leave_out(struct unpacking *unpacking, const struct entry_in *entry)
{
	enum file_omission what = entry->type == '6' ? OMITTED_FIFO : entry->type == '3' || entry->type == '4' ? OMITTED_DEVICE : OMITTED_TYPE;
	return omit(&unpacking->rules.omissions, what, entry->path) == CHANNEL_OK ? DONE : BROKEN;
}

/* Of an entry that is in its place: what was said of it and is not kept. */
static enum outcome tell_left_out(struct unpacking *unpacking, const struct entry_in *entry)
{
	static const struct {
		enum left_out fact;
		enum file_omission what;
	} losses[] = {{LEFT_ACL, OMITTED_ACL}, {LEFT_XATTR, OMITTED_XATTR}, {LEFT_FLAGS, OMITTED_FLAGS}, {LEFT_RECORD, OMITTED_RECORD}};
	for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
		if ((entry->left_out & losses[i].fact) && omit(&unpacking->rules.omissions, losses[i].what, entry->path) != CHANNEL_OK)
			return BROKEN;
	return DONE;
}

static enum outcome put_in_place(struct unpacking *unpacking, struct entry_in *entry)
{
	const char *name;
	if (pending_leave(&unpacking->pending, &unpacking->rules, unpacking->parents.root, entry->path) < 0)
		return FAILED;
	if (entry->path[0] == '\0') {
		unpacking->root_was_named = 1;
		return unpack_root(unpacking, entry);
	}
	int directory = parents_open(&unpacking->parents, entry->path, 1, &name);
	if (directory < 0)
		return unpack_refusal();
	switch (entry->type) {
	case '1':
		return unpack_hard_link(unpacking, entry, directory, name);
	case '2':
		return unpack_symlink(unpacking, entry, directory, name);
	case '5':
		return unpack_directory(unpacking, entry, directory, name);
	default:
		return unpack_file(unpacking, entry, directory, name);
	}
}

static enum outcome unpack_entry(struct unpacking *unpacking, struct entry_in *entry)
{
	if (path_normalise(entry->path) < 0)
		return UNSAFE;
	if (!strchr("0125", entry->type))
		return leave_out(unpacking, entry);
	enum outcome outcome = put_in_place(unpacking, entry);
	if (outcome != DONE)
		return outcome;
	unpacking->entries++;
	unpacking->whole_bytes = unpacking->bytes;
	return tell_left_out(unpacking, entry);
}

static enum outcome unpack_all(struct unpacking *unpacking, struct entry_in *entry)
{
	enum archive_result next;
	while ((next = archive_next(&unpacking->upload, &unpacking->globals, entry)) == ARCHIVE_ENTRY) {
		enum outcome outcome = unpack_entry(unpacking, entry);
		if (outcome != DONE)
			return outcome;
		if (unpacking->rules.gone)
			return BROKEN;
	}
	if (next == ARCHIVE_END)
		return pending_leave(&unpacking->pending, &unpacking->rules, unpacking->parents.root, NULL) < 0 ? FAILED : DONE;
	return next == ARCHIVE_BAD ? BAD : next == ARCHIVE_BROKEN ? BROKEN : FAILED;
}

static enum channel_result tell(struct unpacking *unpacking, enum outcome outcome, const char *path)
{
	uint64_t made = unpacking->entries - (uint64_t)(unpacking->root_was_named && unpacking->entries > 0);
	int stays = made > 0 || unpacking->root_is_new;
	if (outcome != DONE && outcome != BROKEN && stays && channel_partial(unpacking->whole_bytes, made) != CHANNEL_OK)
		return CHANNEL_GONE;
	switch (outcome) {
	case DONE:
		return channel_end(unpacking->bytes, unpacking->entries, unpacking->rules.omissions.count);
	case BROKEN:
		return unpacking->upload.broken == CHANNEL_OK ? CHANNEL_GONE : unpacking->upload.broken;
	case FAILED:
		return upload_fail(&unpacking->upload, REASON_ERRNO, errno, path);
	case UNSAFE:
		return upload_fail(&unpacking->upload, REASON_UNSAFE_ENTRY, 0, path);
	case BAD:
		return upload_fail(&unpacking->upload, REASON_BAD_ARCHIVE, 0, path);
	}
	return CHANNEL_GONE;
}

/* The destination: made when it is missing, with what is missing above it. -1 with errno. */
static int open_root(const char *path, int *is_new)
{
	*is_new = mkdir(path, 0755) == 0;
	if (!*is_new && errno == ENOENT && make_parents(path) == 0)
		*is_new = mkdir(path, 0755) == 0;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

enum channel_result files_unpack(const struct channel_frame *frame)
{
	const char *path = request_text(frame, "path");
	struct unpacking unpacking = {.rules.owners = request_flag(frame, "owners")};
	struct entry_in entry = {0};
	if (!path)
		return CHANNEL_MALFORMED;
	upload_begin(&unpacking.upload);
	int root = open_root(path, &unpacking.root_is_new);
	if (root < 0)
		return upload_fail(&unpacking.upload, REASON_ERRNO, errno, NULL);
	parents_begin(&unpacking.parents, root);
	enum outcome outcome = unpack_all(&unpacking, &entry);
	enum channel_result result = tell(&unpacking, outcome, entry.path);
	free(unpacking.globals.bytes);
	pending_free(&unpacking.pending);
	parents_end(&unpacking.parents);
	entry_free(&entry);
	close(root);
	return result;
}
