#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void name_of(char name[EXEC_ID_BYTES + 8], const char *exec, const char *suffix)
{
	memcpy(name, exec, EXEC_ID_LENGTH);
	strcpy(name + EXEC_ID_LENGTH, suffix);
}

int record_write(int directory, const struct exit_body *body)
{
	char fresh[EXEC_ID_BYTES + 8], final[EXEC_ID_BYTES + 8];
	name_of(fresh, body->progress.exec, ".new");
	name_of(final, body->progress.exec, ".exit");
	int fd = openat(directory, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	ssize_t written = write(fd, body, sizeof *body);
	int problem = written < 0 ? errno : written == (ssize_t)sizeof *body ? 0 : ENOSPC;
	close(fd);
	if (problem == 0 && renameat(directory, fresh, directory, final) < 0)
		problem = errno;
	if (problem == 0)
		return 0;
	unlinkat(directory, fresh, 0);
	errno = problem;
	return -1;
}

int record_read(int directory, const char *exec, struct exit_body *body)
{
	char name[EXEC_ID_BYTES + 8];
	name_of(name, exec, ".exit");
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t got = read(fd, body, sizeof *body);
	close(fd);
	return got == (ssize_t)sizeof *body ? 0 : -1;
}
