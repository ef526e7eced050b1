#include "files_temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

enum { NAME_TRIES = 8 };

void temp_name(char name[TEMP_NAME_BYTES])
{
	static uint64_t counter;
	uint64_t random = 0;
	if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
		random = (uint64_t)getpid() << 32; /* the name is checked to be free all the same */
	snprintf(name, TEMP_NAME_BYTES, ".dsec-%016llx", (unsigned long long)(random + counter++));
}

static int make_named(struct temp *temp)
{
	for (int tries = 0; tries < NAME_TRIES; tries++) {
		temp_name(temp->name);
		temp->fd = openat(temp->directory, temp->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (temp->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	temp->name[0] = '\0';
	return -1;
}

int temp_make(struct temp *temp, int directory)
{
	*temp = (struct temp){.directory = directory};
	temp->fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (temp->fd >= 0)
		return 0;
	return errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL ? make_named(temp) : -1;
}

/* Two names of one file: rename(2) then does nothing at all, and the spare name has to go. */
static int rename_over(int directory, const char *spare, const char *name)
{
	int problem = renameat(directory, spare, directory, name) < 0 ? errno : 0;
	unlinkat(directory, spare, 0);
	errno = problem;
	return problem ? -1 : 0;
}

int link_over(int from, const char *from_name, int flags, int directory, const char *name)
{
	char spare[TEMP_NAME_BYTES];
	if (linkat(from, from_name, directory, name, flags) == 0)
		return 0;
	if (errno != EEXIST)
		return -1;
	for (int tries = 0; tries < NAME_TRIES; tries++) {
		temp_name(spare);
		if (linkat(from, from_name, directory, spare, flags) == 0)
			return rename_over(directory, spare, name);
		if (errno != EEXIST)
			break;
	}
	return -1;
}

int temp_commit(struct temp *temp, const char *name)
{
	if (temp->name[0] == '\0') {
		char self[40];
		snprintf(self, sizeof self, "/proc/self/fd/%d", temp->fd);
		return link_over(AT_FDCWD, self, AT_SYMLINK_FOLLOW, temp->directory, name);
	}
	if (renameat(temp->directory, temp->name, temp->directory, name) < 0)
		return -1;
	temp->name[0] = '\0';
	return 0;
}

void temp_close(struct temp *temp)
{
	if (temp->name[0] != '\0')
		unlinkat(temp->directory, temp->name, 0);
	temp->name[0] = '\0';
	if (temp->fd >= 0)
		close(temp->fd);
	temp->fd = -1;
}
