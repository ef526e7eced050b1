/*
 * The on-disk format of EROFS, as much as is written here: extended inodes, chunked files over extra devices, inline tails.
 * Little-endian, like every machine this runs on (checked when it is built).
 */
#ifndef DSEC_PACKER_EROFS_H
#define DSEC_PACKER_EROFS_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "structures are written as they lie in memory");

enum {
	EROFS_SUPER_OFFSET = 1024,
	EROFS_MAGIC = 0xE0F5E1E2,
	EROFS_COMPAT_MTIME = 0x2,
	EROFS_INCOMPAT_CHUNKED_FILE = 0x4,
	EROFS_INCOMPAT_DEVICE_TABLE = 0x8,
	EROFS_SLOT_BYTES = 32, /* unit of inode numbers */
	EROFS_LAYOUT_PLAIN = 0,
	EROFS_LAYOUT_INLINE = 2,
	EROFS_LAYOUT_CHUNKED = 4,
	EROFS_FORMAT_EXTENDED = 1,
	EROFS_CHUNK_INDEXES = 0x20,
};
#define EROFS_HOLE 0xffffffffu

struct erofs_super {
	uint32_t magic, checksum, feature_compat;
	uint8_t block_bits, ext_slots;
	uint16_t root_nid;
	uint64_t inodes, build_time;
	uint32_t build_time_ns, blocks, meta_block, xattr_block;
	uint8_t uuid[16], volume_name[16];
	uint32_t feature_incompat;
	uint16_t compression, extra_devices, device_slot_offset;
	uint8_t dir_block_bits, xattr_prefixes;
	uint32_t xattr_prefix_start;
	uint64_t packed_nid;
	uint8_t reserved[24];
} __attribute__((packed));
_Static_assert(sizeof(struct erofs_super) == 128, "superblock");

/* `tag` holds the digest of the data file, 64 hexadecimal digits: the image itself says what it stands on. */
struct erofs_device {
	char tag[64];
	uint32_t blocks, mapped_block;
	uint8_t reserved[56];
} __attribute__((packed));
_Static_assert(sizeof(struct erofs_device) == 128, "device slot");

struct erofs_inode {
	uint16_t format, xattr_count, mode, reserved;
	uint64_t size;
	uint32_t u; /* first block, device number, or format of the chunks */
	uint32_t number, uid, gid;
	uint64_t mtime;
	uint32_t mtime_ns, nlink;
	uint8_t reserved2[16];
} __attribute__((packed));
_Static_assert(sizeof(struct erofs_inode) == 64, "inode");

struct erofs_chunk {
	uint16_t advise, device;
	uint32_t block;
} __attribute__((packed));

struct erofs_dirent {
	uint64_t nid;
	uint16_t name_offset;
	uint8_t type, reserved;
} __attribute__((packed));
_Static_assert(sizeof(struct erofs_dirent) == 12, "directory entry");

struct erofs_xattr_header {
	uint32_t filter;
	uint8_t shared_count, reserved[7];
} __attribute__((packed));

struct erofs_xattr_entry {
	uint8_t name_length, prefix;
	uint16_t value_size;
} __attribute__((packed));

#endif
