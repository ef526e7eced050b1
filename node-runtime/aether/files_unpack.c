/*
 * UNPACK: an archive into a directory.
 *
 * Every name is resolved beneath the destination and through no symbolic link, old or new. The first entry that would leave it, or
 * cannot be made, ends the work and is named; what came before stays. A file appears only when it is whole and takes the place of
 * what was there. Directories get their mode and time when the archive has left them. What is not carried is told.
 */
#include "files_archive_in.h"
#include "files_meta.h"
#include "files_parents.h"
#include "files_path.h"
#include "files_pending.h"
#include "files_request.h"
#include "files_sparse.h"
#include "files_temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct unpacking {
	struct upload upload;
	struct parents parents;
	struct pending pending;
	struct meta_rules rules;
	uint64_t bytes, entries;
	int root_is_new;
};

/* UNSAFE, BAD and FAILED (errno) are told with the entry's name. */
enum outcome { DONE = 0, BROKEN = -1, FAILED = -2, UNSAFE = -3, BAD = -4 };

static enum outcome refusal(void)
{
	return errno == ELOOP || errno == EXDEV ? UNSAFE : FAILED;
}

static struct meta meta_of(struct entry_in *entry)
{
	struct meta meta = {entry->mode, entry->uid, entry->gid, entry->modified_s, entry->modified_ns, entry->xattrs};
	return meta;
}

/* The bytes of a stretch of data. 0: all came. */
static enum outcome put_data(struct unpacking *unpacking, struct entry_in *entry, struct sparse_writer *writer, uint64_t length)
{
	while (length > 0) {
		const uint8_t *bytes;
		size_t got = archive_content(&unpacking->upload, entry, length < SIZE_MAX ? (size_t)length : SIZE_MAX, &bytes);
		if (got == 0)
			return unpacking->upload.broken == CHANNEL_OK ? BAD : BROKEN;
		if (sparse_write(writer, bytes, got) < 0)
			return FAILED;
		length -= got;
		unpacking->bytes += got;
	}
	return DONE;
}

static enum outcome put_content(struct unpacking *unpacking, struct entry_in *entry, int fd)
{
	struct sparse_writer writer;
	sparse_begin(&writer, fd, 0);
	if (!entry->sparse)
		return put_data(unpacking, entry, &writer, entry->stored);
	for (size_t at = 0; at < entry->pieces.count; at++) {
		sparse_skip(&writer, entry->pieces.list[at].offset - writer.size);
		enum outcome put = put_data(unpacking, entry, &writer, entry->pieces.list[at].length);
		if (put != DONE)
			return put;
	}
	sparse_skip(&writer, entry->size - writer.size);
	return sparse_end(&writer) < 0 ? FAILED : DONE;
}

/* A new name gets its file at once, which is one call less for each of many; an old one keeps its file until the new one is whole. */
static enum outcome unpack_file(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name)
{
	struct temp temp = {.fd = -1};
	const struct meta meta = meta_of(entry);
	/* attributes need a file that its owner may write to */
	mode_t mode = meta.xattrs.length > 0 ? 0600 : meta.mode & 0777;
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	int is_new = fd >= 0;
	if (!is_new && (errno != EEXIST || temp_make(&temp, directory) < 0))
		return FAILED;
	enum outcome outcome = put_content(unpacking, entry, is_new ? fd : temp.fd);
	if (outcome == DONE && meta_apply(&unpacking->rules, &meta, is_new ? fd : temp.fd, entry->path) < 0)
		outcome = FAILED;
	if (outcome == DONE && !is_new && temp_commit(&temp, name) < 0)
		outcome = FAILED;
	int problem = errno;
	if (is_new)
		close(fd);
	if (is_new && outcome != DONE)
		unlinkat(directory, name, 0);
	temp_close(&temp);
	errno = problem;
	return outcome;
}

static enum outcome unpack_symlink(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name)
{
	const struct meta meta = meta_of(entry);
	char spare[TEMP_NAME_BYTES];
	if (!entry->link)
		return BAD;
	if (symlinkat(entry->link, directory, name) < 0) {
		if (errno != EEXIST)
			return FAILED;
		temp_name(spare);
		if (symlinkat(entry->link, directory, spare) < 0)
			return FAILED;
		if (renameat(directory, spare, directory, name) < 0) {
			int problem = errno;
			unlinkat(directory, spare, 0);
			errno = problem;
			return FAILED;
		}
	}
	return meta_apply_link(&unpacking->rules, &meta, directory, name, entry->path) < 0 ? FAILED : DONE;
}

/* To a file that is there, beneath the same destination. */
static enum outcome unpack_hard_link(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name)
{
	struct parents target;
	const char *target_name;
	if (!entry->link)
		return BAD;
	if (path_normalise(entry->link) < 0)
		return UNSAFE;
	if (entry->link[0] == '\0')
		return BAD;
	parents_begin(&target, unpacking->parents.root);
	int from = parents_open(&target, entry->link, 0, &target_name);
	enum outcome outcome = DONE;
	if (from < 0)
		outcome = refusal();
	else if (link_over(from, target_name, 0, directory, name) < 0)
		outcome = FAILED;
	int problem = errno;
	parents_end(&target);
	errno = problem;
	return outcome;
}

static enum outcome unpack_directory(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name)
{
	struct stat status;
	if (mkdirat(directory, name, 0700) < 0) {
		if (errno != EEXIST || fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			return FAILED;
		if (!S_ISDIR(status.st_mode)) {
			errno = ENOTDIR;
			return FAILED;
		}
	}
	const struct meta meta = meta_of(entry);
	entry->xattrs = (struct pax_buffer){0}; /* they are the waiting directory's now */
	return pending_push(&unpacking->pending, entry->path, &meta) < 0 ? FAILED : DONE;
}

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

static enum outcome unpack_entry(struct unpacking *unpacking, struct entry_in *entry)
{
	const char *name;
	if (path_normalise(entry->path) < 0)
		return UNSAFE;
	if (!strchr("0125", entry->type))
		return leave_out(unpacking, entry);
	if (pending_leave(&unpacking->pending, &unpacking->rules, unpacking->parents.root, entry->path) < 0)
		return FAILED;
	unpacking->entries++;
	if (entry->path[0] == '\0')
		return unpack_root(unpacking, entry);
	int directory = parents_open(&unpacking->parents, entry->path, 1, &name);
	if (directory < 0)
		return refusal();
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

static enum outcome unpack_all(struct unpacking *unpacking, struct entry_in *entry)
{
	enum archive_result next;
	while ((next = archive_next(&unpacking->upload, entry)) == ARCHIVE_ENTRY) {
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
	pending_free(&unpacking.pending);
	parents_end(&unpacking.parents);
	entry_free(&entry);
	close(root);
	return result;
}
