#include "files_meta.h"

#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

static void tell(struct meta_rules *rules, enum file_omission what, const char *path)
{
	if (omit(&rules->omissions, what, path) != CHANNEL_OK)
		rules->gone = 1;
}

/* Only root inside may, and only to ids that the sandbox has. */
static int is_refusal(void)
{
	return errno == EPERM || errno == EINVAL;
}

/* 1 when the file is the archive's owner's now, 0 when it is not; -1 with errno. */
static int apply_owner(struct meta_rules *rules, const struct meta *meta, int directory, const char *name, int flags, const struct stat *now, const char *path)
{
	if (meta->uid == now->st_uid && meta->gid == now->st_gid)
		return 1;
	if (!rules->owners)
		return 0;
	if (meta->uid < UINT32_MAX && meta->gid < UINT32_MAX && fchownat(directory, name, (uid_t)meta->uid, (gid_t)meta->gid, flags) == 0)
		return 1;
	if (meta->uid < UINT32_MAX && meta->gid < UINT32_MAX && !is_refusal())
		return -1;
	tell(rules, OMITTED_OWNER, path);
	return 0;
}

/* A program that runs with its owner's rights must not get another owner's. */
static mode_t mode_for(struct meta_rules *rules, const struct meta *meta, int owned, const char *path)
{
	if (owned || !(meta->mode & (S_ISUID | S_ISGID)))
		return meta->mode;
	tell(rules, OMITTED_SET_ID, path);
	return meta->mode & ~(mode_t)(S_ISUID | S_ISGID);
}

static void decode_name(const struct pax_record *record, char name[XATTR_NAME_BYTES])
{
	size_t at = 0;
	for (size_t i = 0; i < record->key_length && at + 1 < XATTR_NAME_BYTES; i++) {
		const char *from = record->key + i;
		int coded = i + 2 < record->key_length && (memcmp(from, "%3D", 3) == 0 || memcmp(from, "%25", 3) == 0);
		name[at++] = !coded ? *from : from[1] == '3' ? '=' : '%';
		i += coded ? 2 : 0;
	}
	name[at] = '\0';
}

static int apply_xattrs(struct meta_rules *rules, const struct pax_buffer *xattrs, int fd, const char *path)
{
	const char *at = xattrs->bytes, *end = at + xattrs->length;
	char name[XATTR_NAME_BYTES];
	struct pax_record record;
	int refused = 0;
	while (xattrs->length > 0 && pax_next(&at, end, &record) > 0) {
		decode_name(&record, name);
		if (fsetxattr(fd, name, record.value, record.value_length, 0) == 0)
			continue;
		if (errno == ENOSPC || errno == EDQUOT)
			return -1;
		refused = 1; /* not for this user, or not on this file system */
	}
	if (refused)
		tell(rules, OMITTED_XATTR, path);
	return 0;
}

static void set_times(const struct meta *meta, struct timespec times[2])
{
	times[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
	times[1] = (struct timespec){.tv_sec = meta->modified_s, .tv_nsec = meta->modified_ns};
}

int meta_apply(struct meta_rules *rules, const struct meta *meta, int fd, const char *path)
{
	struct stat now;
	struct timespec times[2];
	if (fstat(fd, &now) < 0)
		return -1;
	int owned = apply_owner(rules, meta, fd, "", AT_EMPTY_PATH, &now, path);
	if (owned < 0)
		return -1;
	mode_t mode = mode_for(rules, meta, owned, path);
	if (((now.st_mode & 07777) != mode || (mode & (S_ISUID | S_ISGID))) && fchmod(fd, mode) < 0)
		return -1;
	if (apply_xattrs(rules, &meta->xattrs, fd, path) < 0)
		return -1;
	set_times(meta, times);
	return futimens(fd, times);
}

int meta_apply_link(struct meta_rules *rules, const struct meta *meta, int directory, const char *name, const char *path)
{
	struct stat now;
	struct timespec times[2];
	if (fstatat(directory, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (apply_owner(rules, meta, directory, name, AT_SYMLINK_NOFOLLOW, &now, path) < 0)
		return -1;
	set_times(meta, times);
	return utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW);
}
