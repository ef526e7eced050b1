#include "data.h"

#include "digest.h"
#include "erofs.h"
#include "limits.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char MAGIC[8] = "DSECDATA";

struct row {
	uint64_t hash;
	uint32_t block, length;
};

struct footer {
	uint64_t rows, table_block;
	char magic[8];
};

/* A row of the table in memory: where a chunk lies in any of the devices. */
struct slot {
	struct row row;
	uint16_t device;
	bool used;
};

static struct {
	int fd;
	char tag[65];
	uint32_t blocks;
} devices[DEVICES_MAX + 1];
static int device_count, new_device = -1;

static struct slot *slots;
static size_t slot_count, slots_used;

static struct row *rows; /* of the new data file */
static size_t row_count, row_room;

static uint8_t *pending; /* chunks that are not written yet, from block `written` on */
static size_t pending_bytes;
static uint32_t written;
static struct data_counts counts;
static bool may_clone;

/* Hashes ------------------------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * 0x9e3779b97f4a7c15ull;
	return lane << 29 | lane >> 35;
}

static uint64_t hash_of(const uint8_t *bytes, size_t length)
{
	uint64_t lanes[4] = {length, 1, 2, 3}, words[4];
	for (; length >= sizeof words; bytes += sizeof words, length -= sizeof words) {
		memcpy(words, bytes, sizeof words);
		for (int i = 0; i < 4; i++)
			lanes[i] = mix(lanes[i], words[i]);
	}
	memset(words, 0, sizeof words);
	memcpy(words, bytes, length);
	for (int i = 0; i < 4; i++)
		lanes[i] = mix(lanes[i], words[i]);
	uint64_t hash = mix(mix(mix(lanes[0], lanes[1]), lanes[2]), lanes[3]);
	return hash ^ hash >> 32;
}

static struct slot *first_slot(uint64_t hash)
{
	return &slots[hash & (slot_count - 1)];
}

static struct slot *next_slot(struct slot *slot)
{
	return slot + 1 == slots + slot_count ? slots : slot + 1;
}

static void insert(struct slot slot)
{
	struct slot *at = first_slot(slot.row.hash);
	while (at->used)
		at = next_slot(at);
	*at = slot;
	slots_used++;
}

static void grow(void)
{
	struct slot *old = slots;
	size_t old_count = slot_count;
	slot_count = old_count ? old_count * 2 : 1 << 14;
	slots = must(calloc(slot_count, sizeof *slots));
	slots_used = 0;
	for (size_t i = 0; i < old_count; i++)
		if (old[i].used)
			insert(old[i]);
	free(old);
}

static void remember(struct row row, int device)
{
	if (slots_used * 4 >= slot_count * 3)
		grow();
	insert((struct slot){row, (uint16_t)device, true});
}

/* Earlier data files ------------------------------------------------------------------------------------------ */

static bool read_fully(int fd, void *to, size_t length, off_t at)
{
	for (size_t done = 0; done < length;) {
		ssize_t got = pread(fd, (char *)to + done, length - done, at + (off_t)done);
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

static bool load_table(int device, off_t size)
{
	struct footer footer;
	if (size < (off_t)sizeof footer || !read_fully(devices[device].fd, &footer, sizeof footer, size - (off_t)sizeof footer))
		return false;
	if (memcmp(footer.magic, MAGIC, sizeof MAGIC) != 0 || footer.table_block > (uint64_t)size / BLOCK_BYTES ||
	    footer.rows > (uint64_t)size / sizeof(struct row))
		return false;
	struct row *table = must(calloc(footer.rows + 1, sizeof *table));
	bool whole = read_fully(devices[device].fd, table, footer.rows * sizeof *table, (off_t)footer.table_block * BLOCK_BYTES);
	for (uint64_t i = 0; whole && i < footer.rows; i++)
		if (table[i].length <= CHUNK_BYTES && table[i].block < footer.table_block)
			remember(table[i], device);
	free(table);
	return whole;
}

void data_add_earlier(const char *path, const char *tag)
{
	struct stat status;
	if (device_count == DEVICES_MAX - 1 || strlen(tag) != 64)
		return;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	devices[device_count].fd = fd;
	memcpy(devices[device_count].tag, tag, 65);
	if (fstat(fd, &status) < 0 || !load_table(device_count, status.st_size)) {
		close(fd);
		return;
	}
	devices[device_count++].blocks = (uint32_t)(status.st_size / BLOCK_BYTES);
}

/* The new data file ------------------------------------------------------------------------------------------- */

void data_create(const char *path)
{
	new_device = device_count++;
	devices[new_device].fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (devices[new_device].fd < 0)
		fail("make data file");
	digest_follow(devices[new_device].fd);
	pending = must(malloc(READ_BYTES));
	if (!slots)
		grow();
}

static void write_fully(const void *from, size_t length, off_t at)
{
	for (size_t done = 0; done < length;) {
		ssize_t put = pwrite(devices[new_device].fd, (const char *)from + done, length - done, at + (off_t)done);
		if (put < 0 && errno != EINTR)
			fail("write data file");
		done += put > 0 ? (size_t)put : 0;
	}
	digest_written((uint64_t)at + length);
}

static void flush(void)
{
	write_fully(pending, pending_bytes, (off_t)written * BLOCK_BYTES);
	written += (uint32_t)(pending_bytes / BLOCK_BYTES);
	pending_bytes = 0;
}

static bool is_same(const struct slot *slot, const uint8_t *bytes, uint32_t length)
{
	static uint8_t held[CHUNK_BYTES];
	if (slot->device == new_device && slot->row.block >= written)
		return memcmp(pending + (size_t)(slot->row.block - written) * BLOCK_BYTES, bytes, length) == 0;
	return read_fully(devices[slot->device].fd, held, length, (off_t)slot->row.block * BLOCK_BYTES) && memcmp(held, bytes, length) == 0;
}

static const struct slot *find(uint64_t hash, const uint8_t *bytes, uint32_t length)
{
	for (struct slot *slot = first_slot(hash); slot->used; slot = next_slot(slot))
		if (slot->row.hash == hash && slot->row.length == length && is_same(slot, bytes, length))
			return slot;
	return NULL;
}

static void assert_room(uint64_t blocks)
{
	if (written + pending_bytes / BLOCK_BYTES + blocks >= EROFS_HOLE) {
		errno = EFBIG;
		fail("write data file");
	}
}

static struct row append(uint64_t hash, const uint8_t *bytes, uint32_t length)
{
	size_t padded = (length + BLOCK_BYTES - 1) & ~(size_t)(BLOCK_BYTES - 1);
	if (pending_bytes + padded > READ_BYTES)
		flush();
	assert_room(CHUNK_BLOCKS);
	struct row row = {hash, written + (uint32_t)(pending_bytes / BLOCK_BYTES), length};
	memcpy(pending + pending_bytes, bytes, length);
	memset(pending + pending_bytes + length, 0, padded - length);
	pending_bytes += padded;
	if (row_count == row_room) {
		row_room = row_room ? row_room * 2 : 4096;
		rows = must(realloc(rows, row_room * sizeof *rows));
	}
	rows[row_count++] = row;
	return row;
}

struct chunk_at data_put(const uint8_t *bytes, uint32_t length)
{
	if (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0)
		return (struct chunk_at){0, EROFS_HOLE};
	uint64_t hash = hash_of(bytes, length);
	const struct slot *known = find(hash, bytes, length);
	if (known) {
		counts.shared_bytes += length;
		return (struct chunk_at){known->device, known->row.block};
	}
	struct row row = append(hash, bytes, length);
	remember(row, new_device);
	counts.stored_bytes += length;
	return (struct chunk_at){(uint16_t)new_device, row.block};
}

void data_may_clone(void)
{
	may_clone = true;
}

/* What a file system, or a pair of them, answers that does not share blocks. */
static bool cannot_share(int error)
{
	return error == EOPNOTSUPP || error == ENOTTY || error == EXDEV || error == EINVAL || error == EPERM || error == ETXTBSY;
}

bool data_clone(int file, uint64_t at, uint64_t length, uint32_t *block)
{
	if (!may_clone || length == 0)
		return false;
	flush();
	assert_room(length / BLOCK_BYTES);
	struct file_clone_range range = {.src_fd = file, .src_offset = at, .src_length = length, .dest_offset = (uint64_t)written * BLOCK_BYTES};
	if (ioctl(devices[new_device].fd, FICLONERANGE, &range) < 0) {
		if (!cannot_share(errno))
			fail("share blocks of a file");
		return may_clone = false;
	}
	*block = written;
	written += (uint32_t)(length / BLOCK_BYTES);
	digest_written((uint64_t)written * BLOCK_BYTES);
	counts.shared_bytes += length;
	counts.cloned_bytes += length;
	return true;
}

struct chunk_at data_at(uint32_t block)
{
	return (struct chunk_at){(uint16_t)new_device, block};
}

void data_append_tail(const uint8_t *bytes, uint32_t length)
{
	memcpy(pending, bytes, length);
	memset(pending + length, 0, BLOCK_BYTES - length);
	pending_bytes = BLOCK_BYTES;
	counts.stored_bytes += length;
	flush();
}

struct data_counts data_finish(void)
{
	flush();
	uint32_t table_block = written;
	size_t used = row_count * sizeof *rows + sizeof(struct footer), padded = (used + BLOCK_BYTES - 1) & ~(size_t)(BLOCK_BYTES - 1);
	uint8_t *table = must(calloc(1, padded));
	struct footer footer = {.rows = row_count, .table_block = table_block};
	memcpy(footer.magic, MAGIC, sizeof MAGIC);
	memcpy(table, rows, row_count * sizeof *rows);
	memcpy(table + padded - sizeof footer, &footer, sizeof footer);
	if (table_block > 0)
		write_fully(table, padded, (off_t)table_block * BLOCK_BYTES);
	devices[new_device].blocks = table_block > 0 ? table_block + (uint32_t)(padded / BLOCK_BYTES) : 0;
	free(table);
	return counts;
}

int data_device_count(void)
{
	return device_count;
}

const char *data_tag(int device)
{
	return devices[device].tag;
}

uint32_t data_blocks(int device)
{
	return devices[device].blocks;
}

void data_name_new(void)
{
	digest_end(devices[new_device].tag);
}

const char *data_name(void)
{
	return devices[new_device].blocks > 0 ? devices[new_device].tag : NULL;
}
