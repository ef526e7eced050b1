#include "tombs.h"

#include "files.h"
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool tomb_exists(const char *id)
{
	return file_exists(launcher.tombs_fd, id);
}

int tomb_make(const char *id, struct fault *fault)
{
	static int made;
	if (renameat(launcher.records_fd, id, launcher.tombs_fd, id) < 0) {
		int fd = openat(launcher.tombs_fd, id, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return fault_errno(fault, "write tombstone");
		close_fd(&fd);
	}
	if (++made % TOMB_SWEEP_EVERY == 0)
		tombs_expire();
	return 0;
}

int tomb_remove(const char *id, struct fault *fault)
{
	return unlinkat(launcher.tombs_fd, id, 0) < 0 && errno != ENOENT ? fault_errno(fault, "remove tombstone") : 0;
}

void tomb_settle(const char *id)
{
	int fd = openat(launcher.tombs_fd, id, O_WRONLY | O_TRUNC | O_CLOEXEC);
	close_fd(&fd);
}

static int expire(const char *name, void *context)
{
	const time_t *now = context;
	struct stat status;
	if (fstatat(launcher.tombs_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && *now - status.st_ctime > TOMB_KEEP_SECONDS)
		unlinkat(launcher.tombs_fd, name, 0);
	return 0;
}

void tombs_expire(void)
{
	time_t now = time(NULL);
	each_name(launcher.tombs_fd, expire, &now);
}
