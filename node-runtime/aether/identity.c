#include "identity.h"

#include "number.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lines of a bounded regular file. Longer lines than the buffer are skipped whole. */
struct lines {
	int fd;
	size_t used, at, total;
	int ended, skipping;
	char buffer[IDENTITY_LINE_BYTES];
};

/* O_NONBLOCK and the check: a FIFO or a device of that name would hang or feed us for ever. */
static int lines_open(struct lines *lines, const char *path)
{
	struct stat status;
	*lines = (struct lines){.fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
	if (lines->fd < 0)
		return -1;
	if (fstat(lines->fd, &status) == 0 && S_ISREG(status.st_mode))
		return 0;
	close(lines->fd);
	return -1;
}

static int lines_fill(struct lines *lines)
{
	if (lines->at > 0) {
		memmove(lines->buffer, lines->buffer + lines->at, lines->used - lines->at);
		lines->used -= lines->at;
		lines->at = 0;
	}
	if (lines->used == sizeof lines->buffer) {
		lines->used = 0;
		lines->skipping = 1;
	}
	if (lines->total >= IDENTITY_FILE_MAX_BYTES)
		return 0;
	ssize_t got = read(lines->fd, lines->buffer + lines->used, sizeof lines->buffer - lines->used);
	if (got <= 0)
		return 0;
	lines->used += (size_t)got;
	lines->total += (size_t)got;
	return 1;
}

/* The next line, ended with NUL and free to be cut up; NULL at the end. */
static char *lines_next(struct lines *lines)
{
	for (;;) {
		char *start = lines->buffer + lines->at;
		char *end = memchr(start, '\n', lines->used - lines->at);
		if (!end && !lines->ended) {
			lines->ended = !lines_fill(lines);
			continue;
		}
		if (!end && (lines->used == lines->at || lines->used == sizeof lines->buffer))
			return NULL;
		if (!end)
			end = lines->buffer + lines->used++; /* a last line without a line break */
		*end = '\0';
		lines->at = (size_t)(end + 1 - lines->buffer);
		if (!lines->skipping)
			return start;
		lines->skipping = 0;
	}
}

/* Cuts the next `:` field off `*rest`; NULL when there is none. */
static char *field(char **rest)
{
	char *start = *rest;
	if (!start)
		return NULL;
	char *end = strchr(start, ':');
	if (end)
		*end = '\0';
	*rest = end ? end + 1 : NULL;
	return start;
}

/* A whole decimal number below 2^32 - 1, which means "no change" to the kernel. */
static int parse_id(const char *text, uint32_t *out)
{
	uint64_t value;
	const char *end = text ? number_read(text, UINT32_MAX, &value) : NULL;
	if (!end || *end != '\0')
		return -1;
	*out = (uint32_t)value;
	return 0;
}

static int copy(char *to, size_t room, const char *from)
{
	size_t length = from ? strlen(from) : 0;
	if (length == 0 || length >= room)
		return -1;
	memcpy(to, from, length + 1);
	return 0;
}

/* The first entry with this name, or, without a name, with `out->uid`. 0 and uid, gid, name, home; or -1. */
static int find_user(const char *path, const char *name, struct identity *out)
{
	struct lines lines;
	char *line;
	int found = -1;
	if (lines_open(&lines, path) < 0)
		return -1;
	while (found < 0 && (line = lines_next(&lines))) {
		char *login = field(&line);
		field(&line); /* password */
		uint32_t uid, gid;
		if (parse_id(field(&line), &uid) < 0 || parse_id(field(&line), &gid) < 0)
			continue;
		if (name ? strcmp(login, name) != 0 : uid != out->uid)
			continue;
		field(&line); /* comment */
		out->uid = uid;
		out->gid = gid;
		if (copy(out->name, sizeof out->name, login) < 0)
			out->name[0] = '\0';
		if (copy(out->home, sizeof out->home, field(&line)) < 0)
			strcpy(out->home, "/");
		found = 0;
	}
	close(lines.fd);
	return found;
}

static int lists_member(char *members, const char *name)
{
	for (char *at = members; at && *at;) {
		char *comma = strchr(at, ',');
		if (comma)
			*comma = '\0';
		if (strcmp(at, name) == 0)
			return 1;
		at = comma ? comma + 1 : NULL;
	}
	return 0;
}

static void add_group(struct identity *out, gid_t gid)
{
	for (size_t i = 0; i < out->group_count; i++)
		if (out->groups[i] == gid)
			return;
	if (out->group_count < IDENTITY_GROUPS_MAX)
		out->groups[out->group_count++] = gid;
}

static void add_memberships(const char *path, struct identity *out)
{
	struct lines lines;
	char *line;
	if (out->name[0] == '\0' || lines_open(&lines, path) < 0)
		return;
	while ((line = lines_next(&lines))) {
		field(&line); /* name */
		field(&line); /* password */
		uint32_t gid;
		if (parse_id(field(&line), &gid) == 0 && lists_member(field(&line), out->name))
			add_group(out, gid);
	}
	close(lines.fd);
}

/* An image without a file of users has a root all the same. */
static int be_root(const char *user, struct identity *out)
{
	if (strcmp(user, "root") != 0)
		return -1;
	*out = (struct identity){.name = "root", .home = "/root"};
	return 0;
}

int identity_resolve(const char *user, const char *passwd_path, const char *group_path, struct identity *out)
{
	*out = (struct identity){.home = "/"};
	char number[24];
	const char *colon = strchr(user, ':');
	size_t length = colon ? (size_t)(colon - user) : strlen(user);
	uint32_t uid, gid = 0;
	if (user[0] < '0' || user[0] > '9') {
		if (find_user(passwd_path, user, out) < 0 && be_root(user, out) < 0)
			return -1;
	} else {
		if (length >= sizeof number)
			return -1;
		memcpy(number, user, length);
		number[length] = '\0';
		if (parse_id(number, &uid) < 0 || (colon && parse_id(colon + 1, &gid) < 0))
			return -1;
		out->uid = uid;
		(void)find_user(passwd_path, NULL, out); /* a uid needs no entry: images without users are common */
		if (colon)
			out->gid = gid;
	}
	add_group(out, out->gid);
	if (!colon) /* a group that is named alone is meant alone */
		add_memberships(group_path, out);
	return 0;
}
