/*
 * Attempts of an attacker, each in a process of its own: a signal, a lost right or an end by seccomp changes nothing for the next.
 *
 * A program of attempts is a table; it prints `name<TAB>what happened` per line: `ok` and perhaps a detail, the name of an error,
 * `SIG…` when a signal ended it, `timeout`.
 */
#ifndef SECURITY_ATTEMPT_H
#define SECURITY_ATTEMPT_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct attempt {
	const char *name;
	/* A number that is not negative, or -1 and errno: as system calls do. */
	long (*make)(void);
};

#define ATTEMPTS(table) (int)(sizeof(table) / sizeof *(table))
#define ATTEMPT_SECONDS 5

static char attempt_detail[256]; /* an attempt may say here what it got */

/* Runs first in each attempt's process. */
static void (*attempt_prepare)(void);

static inline long attempt_failed(int error)
{
	errno = error;
	return -1;
}

static inline _Noreturn void attempt_child(const struct attempt *attempt)
{
	signal(SIGALRM, SIG_DFL);
	alarm(ATTEMPT_SECONDS);
	if (attempt_prepare)
		attempt_prepare();
	errno = 0;
	if (attempt->make() < 0)
		printf("%s\t%s\n", attempt->name, errno ? strerrorname_np(errno) : "refused");
	else
		printf("%s\tok%s%s\n", attempt->name, attempt_detail[0] ? " " : "", attempt_detail);
	fflush(stdout);
	_exit(0);
}

static inline void attempt_one(const struct attempt *attempt)
{
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		attempt_child(attempt);
	if (child < 0 || waitpid(child, &status, 0) != child)
		printf("%s\tnot tried: %s\n", attempt->name, strerrorname_np(errno));
	else if (WIFSIGNALED(status))
		printf("%s\t%s%s\n", attempt->name, WTERMSIG(status) == SIGALRM ? "timeout" : "SIG", WTERMSIG(status) == SIGALRM ? "" : sigabbrev_np(WTERMSIG(status)));
	fflush(stdout);
}

static inline void attempt_all(const struct attempt *attempts, int count)
{
	for (int i = 0; i < count; i++)
		attempt_one(&attempts[i]);
}

#endif
