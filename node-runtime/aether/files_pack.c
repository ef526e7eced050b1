/*
 * PACK: a tree as an archive. Links are carried as links and followed never, except a link that the request itself names. What cannot
 * be carried is told; what vanishes while the walk is under way was simply not there.
 */
#include "files_archive_out.h"
#include "files_packing.h"
#include "files_path.h"
#include "files_request.h"
#include "files_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* File systems whose files are questions to the kernel: without end, or never twice the same. */
static int is_kernels(int directory, const char *name)
{
	struct statfs status;
	int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), result = 0;
	if (fd >= 0 && fstatfs(fd, &status) == 0)
		switch ((unsigned long)status.f_type) {
		case PROC_SUPER_MAGIC:
		case SYSFS_MAGIC:
		case DEVPTS_SUPER_MAGIC:
		case CGROUP_SUPER_MAGIC:
		case CGROUP2_SUPER_MAGIC:
		case DEBUGFS_MAGIC:
		case TRACEFS_MAGIC:
		case SECURITYFS_MAGIC:
		case BPF_FS_MAGIC:
			result = 1;
		}
	if (fd >= 0)
		close(fd);
	return result;
}

static int pack_found(struct packing *packing, struct walk *walk, const struct walk_entry *found, dev_t device)
{
	struct item item = {.directory = found->directory, .name = found->name, .path = walk->path};
	if (fstatat(found->directory, found->name, &item.status, AT_SYMLINK_NOFOLLOW) < 0)
		return pack_vanished() ? PACKED : pack_omit(packing, OMITTED_UNREADABLE, item.path); /* a list without the right to enter */
	if (item.status.st_dev != device && is_kernels(found->directory, found->name))
		return pack_omit(packing, OMITTED_MOUNT, item.path);
	int result = pack_item(packing, &item);
	if (result != PACKED || !S_ISDIR(item.status.st_mode) || walk_enter(walk) == 0 || pack_vanished())
		return result;
	return errno == E2BIG ? PACKING_FAILED : pack_omit(packing, OMITTED_UNREADABLE, item.path);
}

static int pack_tree(struct packing *packing, int root, char blamed[PATH_BYTES])
{
	struct walk walk;
	struct walk_entry found;
	struct item top = {.directory = root, .name = ".", .path = "."};
	int result = fstat(root, &top.status) < 0 ? PACKING_FAILED : pack_item(packing, &top);
	if (walk_begin(&walk, root) < 0)
		return PACKING_FAILED;
	while (result == PACKED) {
		enum walk_event event = walk_next(&walk, &found);
		if (event == WALK_END)
			break;
		if (event == WALK_ENTRY)
			result = pack_found(packing, &walk, &found, top.status.st_dev);
		else if (event == WALK_FAILED)
			result = PACKING_FAILED;
	}
	int problem = errno;
	strncat(strcpy(blamed, ""), walk.path, PATH_BYTES - 1);
	walk_end(&walk);
	errno = problem;
	return result;
}

static int pack_single(struct packing *packing, const char *path)
{
	struct place place;
	if (place_find(path, &place) < 0)
		return PACKING_FAILED;
	struct item item = {.directory = place.directory, .name = place.name, .path = place.name};
	int result = fstatat(place.directory, place.name, &item.status, AT_SYMLINK_NOFOLLOW) < 0 ? PACKING_FAILED : pack_item(packing, &item);
	int problem = errno;
	place_close(&place);
	errno = problem;
	return result;
}

static enum channel_result finish(struct packing *packing, int result, const char *blamed)
{
	int problem = errno;
	if (result == PACKED && archive_put_end() != CHANNEL_OK)
		return CHANNEL_GONE;
	if (result == PACKING_GONE || stream_flush() != CHANNEL_OK)
		return CHANNEL_GONE;
	if (result == PACKING_FAILED)
		return channel_fail_at(REASON_ERRNO, problem ? problem : ENOMEM, blamed);
	return channel_end(packing->bytes, packing->entries, packing->omissions.count);
}

enum channel_result files_pack(const struct channel_frame *frame)
{
	const char *path = request_text(frame, "path");
	const char *owners = request_text(frame, "owners");
	struct packing packing = {.plain = owners && strcmp(owners, "0") == 0};
	char blamed[PATH_BYTES] = "";
	if (!path)
		return CHANNEL_MALFORMED;
	stream_begin();
	int root = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC), result;
	if (root >= 0)
		result = pack_tree(&packing, root, blamed);
	else if (errno == ENOTDIR)
		result = pack_single(&packing, path);
	else
		result = PACKING_FAILED;
	enum channel_result told = finish(&packing, result, blamed);
	packing_free(&packing);
	return told;
}
