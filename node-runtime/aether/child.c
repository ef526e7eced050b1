#include "child.h"

#include "frame.h"
#include "identity.h"
#include "limits.h"
#include "lookup.h"
#include "pids.h"
#include "seccomp.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REPORT_FD = 3, DEFAULTS_MAX = 4, CANNOT_START = 127 };

static const char default_path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

_Noreturn static void fail(enum start_failure failure)
{
	struct child_report report = {.failure = (uint16_t)failure, .error_number = errno};
	ssize_t written = write(REPORT_FD, &report, sizeof report); /* a pipe takes this whole, or its reader is gone */
	_exit(written < 0 ? CANNOT_START - 1 : CANNOT_START);
}

/* v1 has no clone into a cgroup: nothing of the command runs before its process is in all of them. */
static void pass_gates(const struct child_plan *plan)
{
	for (int i = 0; i < plan->gate_count; i++)
		if (write(plan->gates[i], "0", 1) != 1)
			fail(errno == EAGAIN ? FAILED_PIDS : FAILED_OTHER);
	errno = EAGAIN;
	if (pids_are_over())
		fail(FAILED_PIDS);
}

/* Descriptors 0…3 are ours, everything else is gone. Sources are above: PID 1 keeps the low numbers occupied. */
static void take_descriptors(const struct child_plan *plan)
{
	if (dup2(plan->stdin_fd, 0) < 0 || dup2(plan->stdout_fd, 1) < 0 || dup2(plan->stderr_fd, 2) < 0)
		fail(FAILED_OTHER);
	if (syscall(SYS_close_range, REPORT_FD + 1, ~0u, 0) < 0)
		fail(FAILED_OTHER);
}

static void set_limits(const struct start_request *request)
{
	struct rlimit limit;
	if (request->open_files > 0) {
		limit = (struct rlimit){request->open_files, request->open_files};
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0) /* above what the node gives */
			fail(FAILED_OTHER);
	} else if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max < COMMAND_NOFILE_SOFT ? limit.rlim_max : COMMAND_NOFILE_SOFT;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* lowering a soft limit is always allowed */
	}
	if (getrlimit(RLIMIT_CORE, &limit) == 0) {
		/* a core file would eat the sandbox's disk; and at 0 a core_pattern's helper would still run, as the host's root */
		limit.rlim_cur = limit.rlim_max < CORE_BYTES_NONE ? limit.rlim_max : CORE_BYTES_NONE;
		(void)setrlimit(RLIMIT_CORE, &limit);
	}
}

/* Moves all values of `key` into a fresh, NULL-ended array with `room` places left over. */
static char **list_values(const struct start_request *request, const char *key, size_t room, size_t *count)
{
	const char *at = request->pairs, *end = at + request->pairs_length, *found, *value;
	size_t length, key_length = strlen(key), pairs = 0;
	for (const char *next = at; (next = kv_next(next, end, &found, &length, &value));)
		pairs += length == key_length && memcmp(found, key, length) == 0;
	char **list = calloc(pairs + room + 1, sizeof *list);
	*count = 0;
	if (!list)
		fail(FAILED_OTHER);
	while ((at = kv_next(at, end, &found, &length, &value)))
		if (length == key_length && memcmp(found, key, length) == 0)
			list[(*count)++] = (char *)(uintptr_t)value;
	return list;
}

static char *pair(const char *name, const char *value)
{
	size_t name_length = strlen(name), value_length = strlen(value);
	char *text = malloc(name_length + 1 + value_length + 1);
	if (!text)
		fail(FAILED_OTHER);
	memcpy(text, name, name_length);
	text[name_length] = '=';
	memcpy(text + name_length + 1, value, value_length + 1);
	return text;
}

/* The environment is what the request names, and these where it does not. */
static char **make_environment(const struct start_request *request, const struct identity *identity)
{
	size_t count;
	char **envp = list_values(request, "env", DEFAULTS_MAX, &count);
	if (!env_get(envp, "PATH"))
		envp[count++] = (char *)(uintptr_t)default_path;
	if (!env_get(envp, "HOME"))
		envp[count++] = pair("HOME", identity->home);
	if (identity->name[0] != '\0' && !env_get(envp, "USER"))
		envp[count++] = pair("USER", identity->name);
	if (identity->name[0] != '\0' && !env_get(envp, "LOGNAME"))
		envp[count++] = pair("LOGNAME", identity->name);
	return envp;
}

/* The filter goes on while CAP_SYS_ADMIN is still there; with no_new_privs instead, sudo and ping would not work inside. */
static void become(const struct identity *identity, int has_terminal)
{
	const gid_t group = has_terminal ? (gid_t)-1 : identity->gid; /* a terminal stays in the group of terminals */
	for (int fd = 0; fd <= 2; fd++)
		(void)fchown(fd, identity->uid, group); /* so that a user may open /dev/stdout again */
	if (seccomp_apply() < 0)
		fail(FAILED_OTHER);
	if (setgroups(identity->group_count, identity->groups) < 0)
		fail(FAILED_OTHER);
	if (setresgid(identity->gid, identity->gid, identity->gid) < 0 || setresuid(identity->uid, identity->uid, identity->uid) < 0)
		fail(errno == EINVAL ? FAILED_USER : FAILED_OTHER); /* EINVAL: outside the sandbox's id range */
	/* until exec this is a copy of PID 1's memory, and a change of ids may have opened it (fs.suid_dumpable) */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		fail(FAILED_OTHER);
}

static void unblock_signals(void)
{
	const uint64_t none = 0;
	if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none) < 0)
		fail(FAILED_OTHER);
}

void child_run(const struct child_plan *plan)
{
	const struct start_request *request = plan->request;
	if (dup3(plan->report_fd, REPORT_FD, O_CLOEXEC) < 0) /* takes the place of the listening socket, here only */
		_exit(CANNOT_START - 1);
	pass_gates(plan);
	take_descriptors(plan);
	if (setsid() < 0 || (request->rows > 0 && terminal_take() < 0))
		fail(FAILED_OTHER);
	umask(022);
	set_limits(request);

	static struct identity identity;
	const char *user = kv_get(request->pairs, request->pairs_length, "user");
	const char *cwd = kv_get(request->pairs, request->pairs_length, "cwd");
	errno = ENOENT;
	if (identity_resolve(user ? user : "0", "/etc/passwd", "/etc/group", &identity) < 0)
		fail(FAILED_USER);
	size_t argument_count;
	char **argv = list_values(request, "arg", 0, &argument_count);
	char **envp = make_environment(request, &identity);
	become(&identity, request->rows > 0);
	if (chdir(cwd ? cwd : "/") < 0)
		fail(FAILED_CWD);
	unblock_signals();
	fail(lookup_exec(argv, envp));
}
