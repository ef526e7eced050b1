/*
 * Everything one process can try against another.
 *
 *   process PID [NAME]    against that process, everything or one attempt
 *   process child         against a child that waits: what root may do to a process of its own
 *   process sniper        against the first process that is caught while it is still a copy of PID 1, stopped between fork and exec
 *   process signals PID   every signal, by every call that sends one; says how many were accepted
 */
#include "attempt.h"

#include <dirent.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

enum { IOPRIO_IDLE = 3 << 13, IOPRIO_WHO_PROCESS = 1, KCMP_FILE = 0, SNIPER_SECONDS = 20, SNIPER_TRIES = 20000 };

static pid_t target;

static const char *path_of(const char *file)
{
	static char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", target, file);
	return path;
}

static long reads(const char *file)
{
	char bytes[16];
	int fd = open(path_of(file), O_RDONLY);
	return fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
}

static long writes(const char *file, const char *text)
{
	int fd = open(path_of(file), O_WRONLY);
	return fd < 0 ? -1 : write(fd, text, strlen(text));
}

static long follows(const char *link)
{
	return readlink(path_of(link), attempt_detail, sizeof attempt_detail - 1);
}

static long lists(const char *directory)
{
	DIR *entries = opendir(path_of(directory));
	int count = 0;
	if (!entries)
		return -1;
	while (readdir(entries))
		count++;
	return count > 2 ? count : attempt_failed(ENOENT);
}

/* A word of the target's memory, by address: found in our own copy of the program, as both are static or forked. */
static int known_word = 4711;

static long trace_attach(void) { return ptrace(PTRACE_ATTACH, target, 0, 0); }
static long trace_seize(void) { return ptrace(PTRACE_SEIZE, target, 0, 0); }
static long memory_read(void) { return open(path_of("mem"), O_RDONLY); }
static long memory_write(void) { return open(path_of("mem"), O_RDWR); }
static long maps(void) { return reads("maps"); }
static long smaps(void) { return reads("smaps"); }
static long pagemap(void) { return open(path_of("pagemap"), O_RDONLY); }
static long auxv(void) { return reads("auxv"); }
static long environment(void) { return open(path_of("environ"), O_RDONLY); }
static long descriptors(void) { return lists("fd"); }
static long descriptor_information(void) { return lists("fdinfo"); }
static long descriptor_open(void) { return open(path_of("fd/1"), O_RDONLY | O_NONBLOCK); }
static long mapped_files(void) { return lists("map_files"); }
static long executable(void) { return follows("exe"); }
static long executable_read(void) { return open(path_of("exe"), O_RDONLY); }
static long executable_write(void)
{
	long fd = open(path_of("exe"), O_WRONLY);
	return fd < 0 && errno == ETXTBSY ? 0 : fd; /* refused only because it runs: the right is there */
}
static long root_directory(void) { return follows("root"); }
static long root_open(void) { return open(path_of("root/."), O_PATH); }
static long working_directory(void) { return follows("cwd"); }
static long namespace_read(void) { return follows("ns/mnt"); }
static long namespace_open(void) { return open(path_of("ns/mnt"), O_RDONLY); }
static long input_output_counts(void) { return reads("io"); }
static long clear_references(void) { return writes("clear_refs", "1"); }
static long oom_score(void) { return writes("oom_score_adj", "1000"); }
static long core_filter(void) { return writes("coredump_filter", "0"); }
static long timer_slack(void) { return writes("timerslack_ns", "1000000"); }

static long vm_copy(int number)
{
	int word = known_word;
	struct iovec ours = {&word, sizeof word}, theirs = {&known_word, sizeof word};
	return syscall(number, target, &ours, 1UL, &theirs, 1UL, 0UL);
}
static long vm_read(void) { return vm_copy(SYS_process_vm_readv); }
static long vm_write(void) { return vm_copy(SYS_process_vm_writev); }

static int pidfd(void) { return (int)syscall(SYS_pidfd_open, target, 0); }
static long pidfd_take(void) { return syscall(SYS_pidfd_getfd, pidfd(), 0, 0); }
static long pidfd_enter(void) { return syscall(SYS_setns, pidfd(), CLONE_NEWUTS); }
static long pidfd_advise(void)
{
	struct iovec theirs = {(void *)((uintptr_t)&known_word & ~4095UL), 4096};
	return syscall(SYS_process_madvise, pidfd(), &theirs, 1UL, 20 /* MADV_COLD */, 0);
}
static long pages_move(void)
{
	void *page = (void *)((uintptr_t)&known_word & ~4095UL);
	int status;
	return syscall(SYS_move_pages, target, 1UL, &page, NULL, &status, 0);
}
static long compare(void) { return syscall(SYS_kcmp, target, getpid(), KCMP_FILE, 0, 0); }
static long robust_list(void)
{
	void *head;
	size_t length;
	return syscall(SYS_get_robust_list, target, &head, &length);
}

static long limit(int resource, rlim_t least)
{
	struct rlimit old, low = {least, least};
	if (prlimit(target, (enum __rlimit_resource)resource, NULL, &old) == 0 && old.rlim_max < least)
		low = old;
	return prlimit(target, (enum __rlimit_resource)resource, &low, NULL);
}
static long limit_files(void) { return limit(RLIMIT_NOFILE, 64); }
static long limit_file_size(void) { return limit(RLIMIT_FSIZE, 1 << 20); }
static long limit_processor_time(void) { return limit(RLIMIT_CPU, 3600); }
static long niceness(void) { return setpriority(PRIO_PROCESS, (id_t)target, 19); }
static long affinity(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	return sched_setaffinity(target, sizeof one, &one);
}
static long policy(void)
{
	struct sched_param parameters = {0};
	return sched_setscheduler(target, SCHED_IDLE, &parameters);
}
static long policy_attributes(void)
{
	struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t runtime, deadline, period; } attributes = {.size = 48, .policy = SCHED_BATCH};
	return syscall(SYS_sched_setattr, target, &attributes, 0);
}
static long disk_priority(void) { return syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, target, IOPRIO_IDLE); }

static const struct attempt ATTEMPTS_OF[] = {
	{"ptrace attach", trace_attach}, {"ptrace seize", trace_seize}, {"mem read", memory_read}, {"mem write", memory_write}, {"maps", maps},
	{"smaps", smaps}, {"pagemap", pagemap}, {"auxv", auxv}, {"environ", environment}, {"fd list", descriptors}, {"fdinfo", descriptor_information},
	{"fd open", descriptor_open}, {"map_files", mapped_files}, {"exe link", executable}, {"exe read", executable_read}, {"exe write", executable_write},
	{"root link", root_directory}, {"root open", root_open}, {"cwd", working_directory}, {"ns link", namespace_read}, {"ns open", namespace_open},
	{"io", input_output_counts}, {"clear_refs", clear_references}, {"oom_score_adj", oom_score}, {"coredump_filter", core_filter},
	{"timerslack_ns", timer_slack}, {"process_vm_readv", vm_read}, {"process_vm_writev", vm_write}, {"pidfd_getfd", pidfd_take},
	{"setns by pidfd", pidfd_enter}, {"process_madvise", pidfd_advise}, {"move_pages", pages_move}, {"kcmp", compare}, {"get_robust_list", robust_list},
	{"prlimit files", limit_files}, {"prlimit file size", limit_file_size}, {"prlimit cpu", limit_processor_time}, {"setpriority", niceness},
	{"sched_setaffinity", affinity}, {"sched_setattr", policy_attributes}, {"sched_setscheduler", policy}, {"ioprio_set", disk_priority},
};

static int send_by(int call, int number)
{
	siginfo_t information = {.si_signo = number, .si_code = -1 /* SI_QUEUE */};
	switch (call) {
	case 0: return kill(target, number);
	case 1: return (int)syscall(SYS_tgkill, target, target, number);
	case 2: return (int)syscall(SYS_rt_sigqueueinfo, target, number, &information);
	default: return (int)syscall(SYS_pidfd_send_signal, pidfd(), number, NULL, 0);
	}
}

static void send_signals(void)
{
	static const char *const CALLS[] = {"kill", "tgkill", "rt_sigqueueinfo", "pidfd_send_signal"};
	for (int call = 0; call < 4; call++) {
		int accepted = 0;
		for (int number = 1; number <= 64; number++)
			accepted += number != 32 && number != 33 && send_by(call, number) == 0;
		printf("%s\tok %d\n", CALLS[call], accepted);
	}
}

static void name_of(pid_t pid, char name[32])
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/comm", pid);
	int fd = open(path, O_RDONLY);
	ssize_t got = fd < 0 ? 0 : read(fd, name, 31);
	name[got < 0 ? 0 : got] = '\0';
	if (fd >= 0)
		close(fd);
}

static pid_t newest_process(void)
{
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	return child;
}

/* Process ids rise: whatever gets the next one is stopped before it has run for long. */
static pid_t catch_copy_of_first(void)
{
	char first[32], caught[32];
	name_of(1, first);
	for (time_t end = time(NULL) + SNIPER_SECONDS; time(NULL) < end;) {
		pid_t next = newest_process() + 1;
		for (int tries = 0; tries < SNIPER_TRIES; tries++) {
			if (kill(next, SIGSTOP) < 0)
				continue;
			name_of(next, caught);
			if (strcmp(caught, first) == 0)
				return next;
			kill(next, SIGCONT);
			break;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	prctl(PR_SET_NAME, "attacker"); /* not the name of anybody who is looked for */
	if (strcmp(argv[1], "signals") == 0 && argc == 3) {
		target = atoi(argv[2]);
		send_signals();
		return 0;
	}
	bool sniper = strcmp(argv[1], "sniper") == 0, child = strcmp(argv[1], "child") == 0;
	target = sniper ? catch_copy_of_first() : child ? fork() : atoi(argv[1]);
	if (child && target == 0)
		for (;;)
			pause();
	if (target <= 0) {
		printf("missed\tok\n");
		return 0;
	}
	for (int i = 0; i < ATTEMPTS(ATTEMPTS_OF); i++)
		if (argc == 2 || strcmp(argv[2], ATTEMPTS_OF[i].name) == 0)
			attempt_one(&ATTEMPTS_OF[i]);
	if (sniper)
		kill(target, SIGCONT);
	if (child)
		kill(target, SIGKILL);
	return 0;
}
