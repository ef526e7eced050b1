/* PATH, environments, and the text of /proc/<pid>/stat. */
#include "check.h"
#include "confine.h"
#include "lookup.h"
#include "walk.h"

#include <linux/capability.h>

static void path_entries(void)
{
	char out[16];
	const char *rest = lookup_next("/bin:/usr/bin::x", "ls", out, sizeof out);
	CHECK(strcmp(out, "/bin/ls") == 0);
	rest = lookup_next(rest, "ls", out, sizeof out);
	CHECK(strcmp(out, "/usr/bin/ls") == 0);
	rest = lookup_next(rest, "ls", out, sizeof out);
	CHECK(strcmp(out, "ls") == 0); /* empty: the working directory */
	CHECK(lookup_next(rest, "ls", out, sizeof out) == NULL && strcmp(out, "x/ls") == 0);
	CHECK(lookup_next("/a-very-long-directory", "ls", out, sizeof out) == NULL && out[0] == '\0');
	CHECK(lookup_next("/bin", "0123456789", out, sizeof out) == NULL && strcmp(out, "/bin/0123456789") == 0);
	CHECK(lookup_next("/bin", "01234567890", out, sizeof out) == NULL && out[0] == '\0');
}

static void environment(void)
{
	char *const envp[] = {"PATHS=no", "PATH=/bin", "EMPTY=", NULL};
	CHECK(strcmp(env_get(envp, "PATH"), "/bin") == 0 && strcmp(env_get(envp, "EMPTY"), "") == 0 && env_get(envp, "PAT") == NULL);
}

static enum start_failure failure_of(const char *program, const char *path)
{
	char *const argv[] = {(char *)program, NULL}, *const envp[] = {(char *)path, NULL};
	return lookup_exec(argv, envp);
}

static void failures(void)
{
	CHECK(failure_of("/no/such", "PATH=/bin") == FAILED_NOT_FOUND && errno == ENOENT);
	CHECK(failure_of("no-such-program", "PATH=/bin:/usr/bin") == FAILED_NOT_FOUND);
	CHECK(failure_of("", "PATH=/bin") == FAILED_NOT_FOUND);
	CHECK(failure_of("sh", "A=") == FAILED_NOT_FOUND);
	CHECK(failure_of("/", "PATH=/bin") == FAILED_NOT_EXECUTABLE && errno == EACCES);
	CHECK(failure_of("/etc/passwd", "PATH=/bin") == FAILED_NOT_EXECUTABLE && errno == EACCES);
	CHECK(failure_of("passwd", "PATH=/no:/etc") == FAILED_NOT_EXECUTABLE);
}

static void stat_lines(void)
{
	struct process_stat stat;
	CHECK(walk_parse_stat("12 (sh) S 3 12 7 0 -1 64 1 2 3 4 5 6 7 8 20 0 1 0 4711 9", &stat) == 0 && stat.parent == 3 && stat.session == 7 && stat.started_ticks == 4711);
	CHECK(walk_parse_stat("12 (a) S 9 9 9 (b) R 3 12 7 0 -1 64 1 2 3 4 5 6 7 8 20 0 1 0 5 9", &stat) == 0 && stat.parent == 3 && stat.session == 7);
	CHECK(walk_parse_stat("12 (sh) S 3 12 7 0 -1", &stat) < 0);
	CHECK(walk_parse_stat("12 (sh", &stat) < 0);
	CHECK(walk_parse_stat("12 (sh)", &stat) < 0);
	CHECK(walk_parse_stat("12 (sh) ", &stat) < 0);
	CHECK(walk_parse_stat("12 (sh) S", &stat) < 0);
	CHECK(walk_parse_stat("12 (sh) S 3 x 7", &stat) < 0);
}

static void capabilities(void)
{
	CHECK(confine_keeps(CAP_SETUID) && confine_keeps(CAP_NET_BIND_SERVICE));
	CHECK(!confine_keeps(CAP_NET_RAW) && !confine_keeps(CAP_SYS_ADMIN) && !confine_keeps(CAP_SYS_PTRACE) && !confine_keeps(CAP_NET_ADMIN));
}

int main(void)
{
	RUN(path_entries);
	RUN(environment);
	RUN(failures);
	RUN(stat_lines);
	RUN(capabilities);
	return 0;
}
