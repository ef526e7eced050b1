#include "files_unpacking.h"

#include "files_sparse.h"
#include "files_temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum outcome unpack_refusal(void)
{
	return errno == ELOOP || errno == EXDEV ? UNSAFE : FAILED;
}

struct meta meta_of(const struct entry_in *entry)
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
enum outcome unpack_file(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name)
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

enum outcome unpack_symlink(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name)
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
	if (meta.xattrs.length > 0)
		entry->left_out |= LEFT_XATTR; /* programs cannot set any on a link, but for root's own kinds */
	return meta_apply_link(&unpacking->rules, &meta, directory, name, entry->path) < 0 ? FAILED : DONE;
}

/* To a file that is there, beneath the same destination. */
enum outcome unpack_hard_link(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name)
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
		outcome = unpack_refusal();
	else if (link_over(from, target_name, 0, directory, name) < 0)
		outcome = FAILED;
	int problem = errno;
	parents_end(&target);
	errno = problem;
	return outcome;
}

enum outcome unpack_directory(struct unpacking *unpacking, struct entry_in *entry, int directory, const char *name)
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
