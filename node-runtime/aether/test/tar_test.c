/* Archives: blocks, extended headers, names, maps of holes; and whatever else may come instead of an archive. */
#include "check.h"
#include "files_archive_in.h"
#include "files_holes.h"
#include "files_links.h"
#include "files_parents.h"
#include "frame.h"
#include "limits.h"
#include "tar_block.h"
#include "tar_pax.h"

#include <sys/socket.h>
#include <unistd.h>

static void numbers(void)
{
	char field[12];
	uint64_t value;
	int64_t number;
	CHECK(tar_put(field, 12, 077777777777) == 0 && tar_get(field, 12, &value) == 0 && value == 077777777777);
	CHECK(tar_put(field, 12, 0100000000000) < 0 && tar_get(field, 12, &value) == 0 && value == 0);
	CHECK(tar_get("   644 \0\0\0\0\0", 12, &value) == 0 && value == 0644);
	CHECK(tar_get("\0\0\0\0\0\0\0\0\0\0\0", 12, &value) == 0 && value == 0);
	CHECK(tar_get("0000064x", 8, &value) < 0 && tar_get("-1\0\0\0\0\0", 8, &value) < 0);
	CHECK(tar_get("\x80\0\0\0\0\0\0\x02\0\0\0\0", 12, &value) == 0 && value == 1ull << 33);
	CHECK(tar_get("\x80\0\0\x01\0\0\0\0\0\0\0\0", 12, &value) < 0);
	CHECK(tar_get_signed("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", 12, &number) == 0 && number == -2);
	CHECK(tar_get("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", 12, &value) < 0);
	CHECK(tar_padding(0) == 0 && tar_padding(1) == 511 && tar_padding(512) == 0 && tar_padding(513) == 511);
}

static void checksums(void)
{
	struct tar_header header = {.name = "name", .type = '0', .magic = "ustar"};
	memset(header.prefix, 0xff, sizeof header.prefix);
	tar_put_checksum(&header);
	CHECK(tar_checksum_is_right(&header));
	header.name[0] ^= 1;
	CHECK(!tar_checksum_is_right(&header));
}

/* The length of a record counts its own digits: every length around a new digit. */
static void records(void)
{
	char value[1200];
	memset(value, '\n', sizeof value);
	for (size_t length = 0; length < sizeof value; length++) {
		struct pax_buffer buffer = {0};
		struct pax_record record;
		pax_add(&buffer, "pre.", "key", value, length);
		pax_add_number(&buffer, "n", length);
		const char *at = buffer.bytes, *end = at + buffer.length;
		uint64_t number;
		CHECK(pax_next(&at, end, &record) == 1 && pax_is(&record, "pre.key") && record.value_length == length);
		CHECK(pax_next(&at, end, &record) == 1 && pax_is(&record, "n") && pax_number(&record, &number) == 0 && number == length);
		CHECK(at == end && pax_next(&at, end, &record) == 0);
		free(buffer.bytes);
	}
	static const char *const broken[] = {"4 =\n", "99 a=b\n", "5 a=b\n", "x a=b\n", " 6 a=b\n", "6 abc\n", "18446744073709551616 a=b\n"};
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		struct pax_record record;
		const char *at = broken[i];
		CHECK(pax_next(&at, at + strlen(at), &record) < 0);
	}
}

static void times(void)
{
	static const struct {
		int64_t seconds;
		uint32_t nanoseconds;
	} samples[] = {{0, 0}, {981173106, 789000000}, {-1, 500000000}, {-2, 1}, {-5, 0}, {0, 1}, {1ll << 40, 999999999}};
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
		struct pax_buffer buffer = {0};
		struct pax_record record;
		int64_t seconds;
		uint32_t nanoseconds;
		pax_add_time(&buffer, "mtime", samples[i].seconds, samples[i].nanoseconds);
		const char *at = buffer.bytes;
		CHECK(pax_next(&at, at + buffer.length, &record) == 1 && pax_time(&record, &seconds, &nanoseconds) == 0);
		CHECK(seconds == samples[i].seconds && nanoseconds == samples[i].nanoseconds);
		free(buffer.bytes);
	}
	struct pax_record record = {.value = "1.2345678919", .value_length = 12};
	int64_t seconds;
	uint32_t nanoseconds;
	CHECK(pax_time(&record, &seconds, &nanoseconds) == 0 && nanoseconds == 234567891);
	record = (struct pax_record){.value = "1.x", .value_length = 3};
	CHECK(pax_time(&record, &seconds, &nanoseconds) < 0);
}

static void names(void)
{
	static const struct {
		const char *from, *to;
	} samples[] = {{"a", "a"}, {"./a//b/./c/", "a/b/c"}, {".", ""}, {"./", ""}, {"a/.b/..c", "a/.b/..c"}, {"..", NULL}, {"a/..", NULL},
		       {"a/../b", NULL}, {"/a", NULL}, {"./../a", NULL}, {"...", "..."}};
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
		char path[32];
		strcpy(path, samples[i].from);
		CHECK((path_normalise(path) == 0) == (samples[i].to != NULL));
		CHECK(strcmp(path, samples[i].to ? samples[i].to : samples[i].from) == 0);
	}
}

static void maps(void)
{
	struct pieces pieces = {0};
	CHECK(pieces_add(&pieces, 10, 5) == 0 && pieces_add(&pieces, 15, 5) == 0 && pieces_bytes(&pieces) == 10);
	CHECK(pieces_are_sound(&pieces, 20) && !pieces_are_sound(&pieces, 19));
	CHECK(pieces_add(&pieces, 19, 1) == 0 && !pieces_are_sound(&pieces, 100));
	pieces_free(&pieces);
	CHECK(pieces_add(&pieces, UINT64_MAX, 2) == 0 && !pieces_are_sound(&pieces, UINT64_MAX));
	pieces_free(&pieces);
	for (int i = 0; i < SPARSE_PIECES_MAX; i++)
		CHECK(pieces_add(&pieces, (uint64_t)i, 1) == 0);
	CHECK(pieces_add(&pieces, SPARSE_PIECES_MAX, 1) < 0 && errno == E2BIG);
	pieces_free(&pieces);
}

static void hard_links_are_remembered_up_to_a_limit(void)
{
	struct links links = {0};
	char path[32];
	const char *first;
	for (ino_t inode = 1; inode <= HARD_LINKS_MAX; inode++) {
		struct stat status = {.st_dev = 7, .st_ino = inode * 4096};
		snprintf(path, sizeof path, "f%llu", (unsigned long long)inode);
		CHECK(links_meet(&links, &status, path, &first) == LINK_FIRST);
	}
	struct stat known = {.st_dev = 7, .st_ino = 100 * 4096}, other = {.st_dev = 8, .st_ino = 100 * 4096};
	CHECK(links_meet(&links, &known, "again", &first) == LINK_KNOWN && strcmp(first, "f100") == 0);
	CHECK(links_meet(&links, &other, "too many", &first) == LINK_FORGOTTEN);
	links_free(&links);
}

static uint8_t archive[16 * 1024];
static size_t archive_length;

static void put(const void *bytes, size_t length)
{
	memcpy(archive + archive_length, bytes, length);
	archive_length += length + tar_padding(length);
}

static void put_header(const char *name, char type, uint64_t size)
{
	struct tar_header header = {.type = type, .magic = "ustar", .version = {'0', '0'}};
	strcpy(header.name, name);
	strcpy(header.link, "target");
	tar_put(header.size, sizeof header.size, size);
	tar_put(header.mode, sizeof header.mode, 04755);
	tar_put_checksum(&header);
	put(&header, sizeof header);
}

/* One of each kind of entry, and each form of a sparse map. */
static void make_archive(void)
{
	struct pax_buffer records = {0};
	char long_name[300];
	archive_length = 0;
	memset(archive, 0, sizeof archive);
	memset(long_name, 'l', sizeof long_name);
	pax_add(&records, "", "comment", "of all", 6);
	pax_add_number(&records, "uid", 77);
	put_header("g", 'g', records.length);
	put(records.bytes, records.length);
	records.length = 0;
	put_header("plain", '0', 5);
	put("hello", 5);
	put_header("link", '1', 0);
	put_header("soft", '2', 0);
	put_header("dir/", '5', 0);
	put_header("L", 'L', sizeof long_name);
	put(long_name, sizeof long_name);
	put_header("short", '0', 3);
	put("abc", 3);
	pax_add(&records, "SCHILY.xattr.", "user.a%3Db", "v\0v", 3);
	pax_add_time(&records, "mtime", -3, 5);
	pax_add_number(&records, "GNU.sparse.major", 1);
	pax_add_number(&records, "GNU.sparse.minor", 0);
	pax_add(&records, "", "GNU.sparse.name", "sparse1", 7);
	pax_add_number(&records, "GNU.sparse.realsize", 5000);
	put_header("x", 'x', records.length);
	put(records.bytes, records.length);
	put_header("hidden", '0', 512 + 3);
	put("2\n4000\n3\n5000\n0\n", 16);
	put("abc", 3);
	records.length = 0;
	pax_add(&records, "", "GNU.sparse.map", "0,2,100,1", 9);
	pax_add_number(&records, "GNU.sparse.size", 200);
	put_header("x", 'x', records.length);
	put(records.bytes, records.length);
	put_header("sparse01", '0', 3);
	put("xyz", 3);
	free(records.bytes);
	archive_length += 1024;
}

/* Reads all that a stream holds. The last result; sets what was seen. */
static enum archive_result read_archive(const uint8_t *bytes, size_t length, int *entries, uint64_t *content)
{
	int ends[2];
	struct upload upload;
	struct entry_in entry = {0};
	struct pax_buffer globals = {0};
	const uint8_t *part;
	enum archive_result result;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	CHECK(frame_send(ends[1], FILE_CHUNK, 1, bytes, length) == 0 && frame_send(ends[1], FILE_COMMIT, 1, NULL, 0) == 0);
	close(ends[1]);
	channel_open(ends[0]);
	upload_begin(&upload);
	*entries = 0;
	*content = 0;
	while ((result = archive_next(&upload, &globals, &entry)) == ARCHIVE_ENTRY) {
		CHECK(entry.path && pieces_are_sound(&entry.pieces, entry.size));
		(*entries)++;
		for (size_t got; (got = archive_content(&upload, &entry, 100, &part)) > 0;)
			*content += got;
	}
	entry_free(&entry);
	free(globals.bytes);
	close(ends[0]);
	return result;
}

static void every_kind_of_entry_is_read(void)
{
	int entries;
	uint64_t content;
	make_archive();
	CHECK(read_archive(archive, archive_length, &entries, &content) == ARCHIVE_END);
	CHECK(entries == 7 && content == 5 + 3 + 3 + 3);
}

/* Reads an archive of one file and gives what was said of it. ARCHIVE_ENTRY, or why there is none. */
static enum archive_result read_one(struct entry_in *entry)
{
	int ends[2];
	struct upload upload;
	struct pax_buffer globals = {0};
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	CHECK(frame_send(ends[1], FILE_CHUNK, 1, archive, archive_length + 1024) == 0 && frame_send(ends[1], FILE_COMMIT, 1, NULL, 0) == 0);
	close(ends[1]);
	channel_open(ends[0]);
	upload_begin(&upload);
	*entry = (struct entry_in){0};
	enum archive_result result = archive_next(&upload, &globals, entry);
	free(globals.bytes);
	close(ends[0]);
	return result;
}

static void begin_archive(void)
{
	archive_length = 0;
	memset(archive, 0, sizeof archive);
}

static void put_record(char type, const char *key, const char *value)
{
	struct pax_buffer records = {0};
	pax_add(&records, "", key, value, strlen(value));
	put_header("records", type, records.length);
	put(records.bytes, records.length);
	free(records.bytes);
}

static void what_is_said_of_all_entries_is_overridden_by_what_is_said_of_one(void)
{
	static const struct {
		const char *own;
		uint64_t uid;
	} cases[] = {{NULL, 1234567}, {"5", 5}, {"", 0}};
	struct entry_in entry;
	for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
		begin_archive();
		put_record('g', "uid", "99");
		put_record('g', "uid", "1234567");
		if (cases[at].own)
			put_record('x', "uid", cases[at].own);
		put_header("file", '0', 0);
		CHECK(read_one(&entry) == ARCHIVE_ENTRY && entry.uid == cases[at].uid && entry.left_out == 0);
		entry_free(&entry);
	}
}

static void what_no_entry_can_share_is_refused(void)
{
	static const char *const keys[] = {"path", "linkpath", "size", "GNU.sparse.map"};
	struct entry_in entry;
	for (size_t at = 0; at < sizeof keys / sizeof *keys; at++) {
		begin_archive();
		put_record('g', keys[at], "1");
		put_header("file", '0', 0);
		CHECK(read_one(&entry) == ARCHIVE_BAD);
		entry_free(&entry);
	}
}

static void what_is_not_kept_is_marked(void)
{
	static const struct {
		char type;
		const char *key;
		unsigned left_out;
	} cases[] = {
		{'x', "SCHILY.acl.access", LEFT_ACL},       {'x', "SCHILY.acl.default", LEFT_ACL},   {'x', "SCHILY.acl.ace", LEFT_ACL},
		{'g', "SCHILY.acl.access", LEFT_ACL},       {'X', "SCHILY.acl.access", LEFT_ACL},    {'x', "SCHILY.fflags", LEFT_FLAGS},
		{'x', "RHT.security.selinux", LEFT_XATTR},  {'x', "LIBARCHIVE.xattr.user.a", LEFT_XATTR}, {'x', "VENDOR.key", LEFT_RECORD},
		{'x', "SUN.holesdata", LEFT_RECORD},        {'x', "atime", 0},                       {'x', "comment", 0},
		{'g', "comment", 0},                        {'x', "charset", 0},                     {'x', "LIBARCHIVE.creationtime", 0},
	};
	struct entry_in entry;
	for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
		begin_archive();
		put_record(cases[at].type, cases[at].key, "value");
		put_header("file", '0', 0);
		CHECK(read_one(&entry) == ARCHIVE_ENTRY && entry.left_out == cases[at].left_out);
		entry_free(&entry);
	}
}

static void an_attribute_in_two_forms_is_kept_once(void)
{
	struct pax_buffer records = {0};
	struct entry_in entry;
	begin_archive();
	pax_add(&records, "LIBARCHIVE.xattr.", "user.a", "dg", 2);
	pax_add(&records, "SCHILY.xattr.", "user.a", "v", 1);
	put_header("records", 'x', records.length);
	put(records.bytes, records.length);
	put_header("file", '0', 0);
	CHECK(read_one(&entry) == ARCHIVE_ENTRY && entry.left_out == 0 && entry.xattrs.length > 0);
	entry_free(&entry);
	free(records.bytes);
}

static void an_archive_that_is_cut_anywhere_is_bad(void)
{
	int entries;
	uint64_t content;
	make_archive();
	for (size_t length = 0; length <= archive_length - 1024; length += 61)
		CHECK(read_archive(archive, length, &entries, &content) == ARCHIVE_BAD);
}

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Sums are set right again, or hardly anything behind them would be reached. */
static void mend_checksums(void)
{
	for (size_t at = 0; at + TAR_BLOCK_BYTES <= archive_length; at += TAR_BLOCK_BYTES) {
		struct tar_header *header = (struct tar_header *)(void *)(archive + at);
		if (memcmp(header->magic, "ustar", 5) == 0)
			tar_put_checksum(header);
	}
}

/* What the sanitizers say is the test; a result there must be. */
static void whatever_else_comes_ends(void)
{
	uint32_t state = 20011;
	int entries;
	uint64_t content;
	for (int round = 0; round < 4000; round++) {
		make_archive();
		for (uint32_t changes = 1 + next_random(&state) % 8; changes > 0; changes--)
			archive[next_random(&state) % archive_length] = (uint8_t)next_random(&state);
		mend_checksums();
		CHECK(read_archive(archive, archive_length, &entries, &content) != ARCHIVE_BROKEN);
	}
}

int main(void)
{
	RUN(numbers);
	RUN(checksums);
	RUN(records);
	RUN(times);
	RUN(names);
	RUN(maps);
	RUN(hard_links_are_remembered_up_to_a_limit);
	RUN(every_kind_of_entry_is_read);
	RUN(what_is_said_of_all_entries_is_overridden_by_what_is_said_of_one);
	RUN(what_no_entry_can_share_is_refused);
	RUN(what_is_not_kept_is_marked);
	RUN(an_attribute_in_two_forms_is_kept_once);
	RUN(an_archive_that_is_cut_anywhere_is_bad);
	RUN(whatever_else_comes_ends);
	return 0;
}
