#include "lookup.h"

#include "limits.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

const char *env_get(char *const *envp, const char *name)
{
	size_t length = strlen(name);
	for (; *envp; envp++)
		if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=')
			return *envp + length + 1;
	return NULL;
}

const char *lookup_next(const char *path, const char *file, char *out, size_t room)
{
	const char *end = strchr(path, ':');
	size_t directory = end ? (size_t)(end - path) : strlen(path), length = strlen(file);
	out[0] = '\0';
	if (directory + 1 + length < room) {
		memcpy(out, path, directory);
		if (directory > 0) /* an empty entry means the working directory */
			out[directory++] = '/';
		memcpy(out + directory, file, length + 1);
	}
	return end ? end + 1 : NULL;
}

static enum start_failure explain(const char *path)
{
	switch (errno) {
	case ENOENT:
	case ENOTDIR: {
		int problem = errno;
		/* the file is there: what is missing is its interpreter or its loader */
		enum start_failure failure = access(path, F_OK) == 0 ? FAILED_NOT_EXECUTABLE : FAILED_NOT_FOUND;
		errno = problem;
		return failure;
	}
	case EACCES:
	case EPERM:
	case ENOEXEC:
	case EISDIR:
	case ELOOP:
	case ELIBBAD:
		return FAILED_NOT_EXECUTABLE;
	case EAGAIN:
		return FAILED_PIDS;
	default:
		return FAILED_OTHER;
	}
}

enum start_failure lookup_exec(char *const *argv, char *const *envp)
{
	const char *file = argv[0];
	if (*file == '\0') {
		errno = ENOENT;
		return FAILED_NOT_FOUND;
	}
	if (strchr(file, '/')) {
		execve(file, argv, envp);
		return explain(file);
	}
	char candidate[PATH_BYTES];
	const char *path = env_get(envp, "PATH");
	enum start_failure worst = FAILED_NOT_FOUND;
	int worst_errno = ENOENT;
	while (path) {
		path = lookup_next(path, file, candidate, sizeof candidate);
		if (candidate[0] == '\0')
			continue;
		execve(candidate, argv, envp);
		enum start_failure failure = explain(candidate);
		if (failure == FAILED_NOT_FOUND)
			continue;
		worst = failure;
		worst_errno = errno;
		if (errno != EACCES) /* a directory or an unreadable place may stand before the real one */
			break;
	}
	errno = worst_errno;
	return worst;
}
