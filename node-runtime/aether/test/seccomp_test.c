/* The filter, run by an interpreter of classic BPF over every system call number and the arguments that matter. */
#include "check.h"
#include "seccomp.h"
#include "syscalls.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdint.h>

static struct sock_filter program[SECCOMP_PROGRAM_MAX];
static size_t length;

#if defined(__x86_64__)
#define HERE AUDIT_ARCH_X86_64
#else
#define HERE AUDIT_ARCH_AARCH64
#endif
#define ALLOWED SECCOMP_RET_ALLOW
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define ABSENT (SECCOMP_RET_ERRNO | ENOSYS)
#define NO_SUCH_OPTION (SECCOMP_RET_ERRNO | ENOPROTOOPT)
#define NO_SUCH_FAMILY (SECCOMP_RET_ERRNO | EAFNOSUPPORT)

/* What the kernel would do; every jump must stay inside and go forward, as its verifier demands. */
static uint32_t run(const struct seccomp_data *data, int *steps)
{
	uint32_t accumulator = 0;
	*steps = 0;
	for (size_t at = 0; at < length; at++, ++*steps) {
		const struct sock_filter *line = &program[at];
		switch (line->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			CHECK(line->k % 4 == 0 && line->k + 4 <= sizeof *data);
			memcpy(&accumulator, (const uint8_t *)data + line->k, 4);
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			at += accumulator == line->k ? line->jt : line->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			at += accumulator >= line->k ? line->jt : line->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			at += (accumulator & line->k) ? line->jt : line->jf;
			break;
		case BPF_RET | BPF_K:
			return line->k;
		default:
			CHECK(!"an instruction the filter has no need of");
		}
	}
	CHECK(!"ran past its end");
	return 0;
}

static uint32_t verdict_of(uint32_t number, uint64_t first, uint64_t second, uint64_t third)
{
	struct seccomp_data data = {.nr = (int)number, .arch = HERE, .args = {first, second, third}};
	int steps;
	return run(&data, &steps);
}

static uint32_t verdict(uint32_t number, uint64_t argument)
{
	return verdict_of(number, argument, 0, 0);
}

static int listed(uint32_t number)
{
	for (size_t i = 0; i < sizeof allowed_everywhere / sizeof allowed_everywhere[0]; i++)
		if (allowed_everywhere[i] == number)
			return 1;
	for (size_t i = 0; i < sizeof allowed_here / sizeof allowed_here[0]; i++)
		if (allowed_here[i] == number)
			return 1;
	return 0;
}

static void every_number(void)
{
	for (uint32_t number = 0; number < 2048; number++) {
		if (number == __NR_io_setup || number == __NR_clone || number == __NR_clone3 || number == __NR_socket || number == __NR_socketpair || number == __NR_personality)
			continue;
		CHECK(verdict(number, 0) == (listed(number) ? ALLOWED : number > NR_NEWEST_KNOWN ? ABSENT : REFUSED));
	}
}

/* By name, so that a slip in the lists shows: what would let a command out of its sandbox, or at the host's kernel. */
static void what_must_be_refused(void)
{
	static const uint32_t refused[] = {
		__NR_mount, __NR_umount2, __NR_pivot_root, __NR_setns, __NR_unshare, __NR_move_mount, __NR_open_tree, __NR_fsopen,
		__NR_fsconfig, __NR_fsmount, __NR_mount_setattr, __NR_bpf, __NR_perf_event_open, __NR_userfaultfd, __NR_keyctl,
		__NR_add_key, __NR_request_key, __NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register, __NR_kexec_load,
		__NR_init_module, __NR_finit_module, __NR_delete_module, __NR_reboot, __NR_swapon, __NR_swapoff, __NR_acct, __NR_quotactl,
		__NR_settimeofday, __NR_clock_settime, __NR_sethostname, __NR_setdomainname, __NR_open_by_handle_at, __NR_fanotify_init,
		__NR_kcmp, __NR_pidfd_getfd, __NR_process_madvise, __NR_syslog, __NR_vhangup, __NR_lookup_dcookie, __NR_nfsservctl,
		__NR_mbind, __NR_set_mempolicy, __NR_move_pages, __NR_migrate_pages, NR_OPEN_TREE_ATTR,
#if defined(__x86_64__)
		__NR_iopl, __NR_ioperm, __NR_ustat, __NR_sysfs, __NR__sysctl, __NR_create_module, __NR_uselib,
#endif
	};
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		CHECK(verdict(refused[i], 0) == REFUSED);
}

static void what_programs_need(void)
{
	static const uint32_t needed[] = {
		__NR_read, __NR_openat, __NR_execve, __NR_mmap, __NR_futex, __NR_rseq, __NR_ptrace, __NR_chroot, __NR_setresuid, __NR_capset,
		__NR_seccomp, __NR_statx, __NR_pidfd_open, __NR_memfd_create, __NR_inotify_init1, __NR_epoll_pwait, __NR_getrandom,
	};
	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
		CHECK(verdict(needed[i], 0) == ALLOWED);
}

static void arguments(void)
{
	CHECK(verdict(__NR_clone3, 0) == ABSENT);
	CHECK(verdict(__NR_clone, 0x01200011) == ALLOWED); /* fork */
	CHECK(verdict(__NR_clone, 0x3d0f00) == ALLOWED);   /* a thread */
	for (uint32_t bit = 0; bit < 32; bit++) {
		uint32_t flag = 1u << bit;
		CHECK(verdict(__NR_clone, flag) == (flag & 0x7e020000u ? REFUSED : ALLOWED));
	}
	for (uint32_t family = 0; family < 64; family++) {
		uint32_t expected = family == 1 || family == 2 || family == 10 || family == 16 || family == 17 ? ALLOWED : NO_SUCH_FAMILY;
		CHECK(verdict(__NR_socket, family) == expected && verdict(__NR_socketpair, family) == expected);
		CHECK(verdict(__NR_socket, 1ull << 32 | family) == expected); /* the kernel looks at an int */
	}
	for (uint32_t option = 0; option < 128; option++) {
		CHECK(verdict_of(__NR_setsockopt, 3, 1, option) == (option == 26 || option == 51 ? NO_SUCH_OPTION : ALLOWED));
		CHECK(verdict_of(__NR_setsockopt, 3, 6, option) == ALLOWED); /* TCP has other meanings for the numbers */
	}
	CHECK(verdict_of(__NR_setsockopt, 3, 1ull << 32 | 1, 1ull << 32 | 26) == NO_SUCH_OPTION);
	CHECK(verdict(__NR_io_setup, 1) == ABSENT);
	CHECK(verdict(__NR_prlimit64, 0) == ALLOWED && verdict(__NR_prlimit64, 2) == ALLOWED);
	CHECK(verdict(__NR_prlimit64, 1) == REFUSED && verdict(__NR_prlimit64, 1ull << 32 | 1) == REFUSED);
	CHECK(verdict(__NR_personality, 0) == ALLOWED && verdict(__NR_personality, 0xffffffff) == ALLOWED);
	CHECK(verdict(__NR_personality, 0x20008) == ALLOWED && verdict(__NR_personality, 0x40000) == REFUSED);
}

static void other_machines(void)
{
	struct seccomp_data data = {.nr = 1, .arch = AUDIT_ARCH_I386};
	int steps;
	CHECK(run(&data, &steps) == SECCOMP_RET_KILL_PROCESS);
	CHECK(verdict(0x40000000u, 0) == ABSENT); /* x32 */
	CHECK(verdict(0xffffffffu, 0) == ABSENT);
}

static void is_quick(void)
{
	for (uint32_t number = 0; number < 600; number++) {
		struct seccomp_data data = {.nr = (int)number, .arch = HERE};
		int steps;
		run(&data, &steps);
		CHECK(steps <= 20);
	}
}

int main(void)
{
	length = seccomp_build(program);
	RUN(every_number);
	RUN(what_must_be_refused);
	RUN(what_programs_need);
	RUN(arguments);
	RUN(other_machines);
	RUN(is_quick);
	return 0;
}
