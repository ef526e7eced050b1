#include "files_entry.h"

#include <string.h>

enum { STAT_BLOCK_BYTES = 512 };

uint8_t entry_type(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return TYPE_FILE;
	case S_IFDIR:
		return TYPE_DIRECTORY;
	case S_IFLNK:
		return TYPE_SYMLINK;
	case S_IFIFO:
		return TYPE_FIFO;
	case S_IFSOCK:
		return TYPE_SOCKET;
	case S_IFCHR:
		return TYPE_CHARACTER;
	case S_IFBLK:
		return TYPE_BLOCK;
	default:
		return 0;
	}
}

struct file_entry_body entry_of(const struct stat *status, size_t name_length, size_t target_length)
{
	return (struct file_entry_body){
		.length = (uint32_t)(sizeof(struct file_entry_body) + name_length + target_length),
		.name_length = (uint16_t)name_length,
		.target_length = (uint16_t)target_length,
		.type = entry_type(status->st_mode),
		.mode = status->st_mode & 07777,
		.uid = status->st_uid,
		.gid = status->st_gid,
		.link_count = (uint32_t)status->st_nlink,
		.modified_ns = (uint32_t)status->st_mtim.tv_nsec,
		.size = (uint64_t)status->st_size,
		.stored_bytes = (uint64_t)status->st_blocks * STAT_BLOCK_BYTES,
		.modified_s = status->st_mtim.tv_sec,
	};
}

enum channel_result entry_answer(const struct stat *status, const char *target)
{
	size_t length = target ? strlen(target) : 0;
	struct file_entry_body body = entry_of(status, 0, length);
	return channel_answer(FILE_ENTRY, &body, sizeof body, target, length);
}
