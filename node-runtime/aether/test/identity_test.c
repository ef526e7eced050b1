/* Users and groups out of files that may hold anything. */
#include "check.h"
#include "identity.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/dsec-identity-XXXXXX";
static char passwd[64], group[64];
static struct identity identity;

static void write_file(const char *path, const char *text, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, text, length) == (ssize_t)length);
	close(fd);
}

static void write_text(const char *path, const char *text)
{
	write_file(path, text, strlen(text));
}

static int resolve(const char *user)
{
	return identity_resolve(user, passwd, group, &identity);
}

static int has_group(gid_t gid)
{
	for (size_t i = 0; i < identity.group_count; i++)
		if (identity.groups[i] == gid)
			return 1;
	return 0;
}

static void ordinary_files(void)
{
	write_text(passwd, "root:x:0:0:root:/root:/bin/sh\n\nbroken line\nann:x:1000:1001:Ann:/home/ann:/bin/sh\nbob:x:1002:1002::/home/bob:");
	write_text(group, "root:x:0:\nann:x:1001:\nwheel:x:10:root,ann\nhalf:x:11:annabel,an\nlast:x:12:bob,ann");
	CHECK(resolve("ann") == 0 && identity.uid == 1000 && identity.gid == 1001);
	CHECK(strcmp(identity.home, "/home/ann") == 0 && strcmp(identity.name, "ann") == 0);
	CHECK(identity.group_count == 3 && has_group(1001) && has_group(10) && has_group(12));
	CHECK(resolve("bob") == 0 && identity.uid == 1002 && strcmp(identity.home, "/home/bob") == 0);
	CHECK(resolve("1000") == 0 && identity.gid == 1001 && strcmp(identity.name, "ann") == 0 && has_group(10));
	CHECK(resolve("1000:5") == 0 && identity.uid == 1000 && identity.gid == 5 && identity.group_count == 1 && has_group(5));
	CHECK(resolve("777") == 0 && identity.uid == 777 && identity.gid == 0 && identity.name[0] == '\0' && strcmp(identity.home, "/") == 0);
	CHECK(resolve("nobody") < 0);
}

static void numbers_out_of_range(void)
{
	CHECK(resolve("4294967295") < 0); /* -1 means "no change" */
	CHECK(resolve("99999999999") < 0 && resolve("1:99999999999") < 0 && resolve("1:") < 0 && resolve("1x") < 0 && resolve("1:2:3") < 0);
	CHECK(resolve("4294967294") == 0 && identity.uid == 4294967294u);
}

static void missing_files(void)
{
	unlink(passwd);
	unlink(group);
	CHECK(resolve("nobody") < 0);
	CHECK(resolve("root") == 0 && identity.uid == 0 && identity.gid == 0 && strcmp(identity.home, "/root") == 0 && strcmp(identity.name, "root") == 0);
	CHECK(resolve("0") == 0 && identity.uid == 0 && strcmp(identity.home, "/") == 0);
	CHECK(mkfifo(passwd, 0600) == 0); /* opened for reading, it would wait for a writer for ever */
	CHECK(resolve("nobody") < 0);
	unlink(passwd);
	CHECK(mkdir(passwd, 0700) == 0);
	CHECK(resolve("nobody") < 0);
	rmdir(passwd);
}

static void long_lines_and_files(void)
{
	const size_t junk = 3 * IDENTITY_LINE_BYTES + 17;
	char *text = malloc(junk + 64);
	CHECK(text);
	memset(text, 'x', junk);
	strcpy(text + junk, "\nann:x:1000:1001::/home/ann:\n");
	write_text(passwd, text);
	CHECK(resolve("ann") == 0 && identity.uid == 1000); /* after a line that was skipped */
	memcpy(text + junk, ":x:1:1::/:\n", 12);
	write_text(passwd, text);
	CHECK(resolve("x") < 0);
	free(text);

	size_t size = IDENTITY_FILE_MAX_BYTES + 100;
	char *huge = malloc(size);
	CHECK(huge);
	memset(huge, '\n', size);
	memcpy(huge + size - 30, "ann:x:1000:1001::/home/ann:\n", 28);
	write_file(passwd, huge, size);
	CHECK(resolve("ann") < 0); /* beyond the limit */
	free(huge);
}

static void many_groups(void)
{
	int fd = open(group, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < 2 * IDENTITY_GROUPS_MAX; i++)
		CHECK(dprintf(fd, "g%d:x:%d:ann\n", i, 2000 + i) > 0);
	close(fd);
	write_text(passwd, "ann:x:1000:1001::/home/ann:\n");
	CHECK(resolve("ann") == 0 && identity.group_count == IDENTITY_GROUPS_MAX);
}

static void random_bytes(void)
{
	uint32_t random = 99;
	char text[300];
	for (int round = 0; round < 2000; round++) {
		for (size_t i = 0; i < sizeof text; i++) {
			random = random * 1664525u + 1013904223u;
			text[i] = "ann:0123456789\n,\0x"[(random >> 16) % 18];
		}
		write_file(passwd, text, sizeof text);
		write_file(group, text, sizeof text);
		(void)resolve("ann");
		(void)resolve("1");
	}
}

int main(void)
{
	CHECK(mkdtemp(directory));
	snprintf(passwd, sizeof passwd, "%s/passwd", directory);
	snprintf(group, sizeof group, "%s/group", directory);
	RUN(ordinary_files);
	RUN(numbers_out_of_range);
	RUN(missing_files);
	RUN(long_lines_and_files);
	RUN(many_groups);
	RUN(random_bytes);
	unlink(passwd);
	unlink(group);
	rmdir(directory);
	return 0;
}
