#include "seccomp.h"

#include "syscalls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define THIS_ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define THIS_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* New namespaces by clone(2): CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
#define NAMESPACE_FLAGS 0x7e020000u
#define FIRST_PROCESS 1u
#define LEVEL_SOCKET 1u

enum verdict { DENY, ALLOW, NO_SUCH_CALL, LOOK_AT_CLONE, LOOK_AT_FAMILY, LOOK_AT_OPTION, LOOK_AT_PERSONALITY, LOOK_AT_PROCESS };

/* personality(2) values of Docker's profile: Linux, UNAME26, ADDR_NO_RANDOMIZE-free combinations, and "query". */
static const uint32_t personalities[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};
/*
 * AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET (which then lacks its capability). The other forty make the host load modules on
 * demand, old code that few have looked at; AF_VSOCK reaches the hypervisor's host past every network namespace.
 */
static const uint32_t families[] = {1, 2, 10, 16, 17};
/*
 * SO_ATTACH_FILTER, SO_ATTACH_REUSEPORT_CBPF. Machine code of filters comes out of one amount for the whole host; when it is used up,
 * no neighbour can start a command, whose own filter needs some of it.
 */
static const uint32_t filter_options[] = {26, 51};

struct run {
	uint16_t first;
	uint8_t verdict;
};

struct builder {
	struct sock_filter *program;
	size_t length;
};

static void emit(struct builder *builder, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false)
{
	if (builder->length >= SECCOMP_PROGRAM_MAX)
		__builtin_trap(); /* the lists have grown: raise the maximum */
	builder->program[builder->length++] = (struct sock_filter){.code = code, .jt = if_true, .jf = if_false, .k = k};
}

static void emit_return(struct builder *builder, uint32_t action)
{
	emit(builder, BPF_RET | BPF_K, action, 0, 0);
}

static void emit_load(struct builder *builder, uint32_t offset)
{
	emit(builder, BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

/* The lower half of an argument: none of the calls that are looked at uses the upper one. */
static void emit_load_argument(struct builder *builder, unsigned index)
{
	emit_load(builder, (uint32_t)(offsetof(struct seccomp_data, args) + index * sizeof(uint64_t)));
}

/* What happens when the value in the accumulator is one of these, and when not. */
static void emit_choice(struct builder *builder, const uint32_t *values, size_t count, uint32_t if_one, uint32_t otherwise)
{
	for (size_t i = 0; i < count; i++)
		emit(builder, BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(count - i), 0);
	emit_return(builder, otherwise);
	emit_return(builder, if_one);
}

static void emit_namespace_flags(struct builder *builder)
{
	emit_load_argument(builder, 0);
	emit(builder, BPF_JMP | BPF_JSET | BPF_K, NAMESPACE_FLAGS, 1, 0);
	emit_return(builder, SECCOMP_RET_ALLOW);
	emit_return(builder, SECCOMP_RET_ERRNO | EPERM);
}

static void emit_socket_option(struct builder *builder)
{
	emit_load_argument(builder, 1);
	emit(builder, BPF_JMP | BPF_JEQ | BPF_K, LEVEL_SOCKET, 1, 0);
	emit_return(builder, SECCOMP_RET_ALLOW);
	emit_load_argument(builder, 2);
	emit_choice(builder, filter_options, sizeof filter_options / sizeof filter_options[0], SECCOMP_RET_ERRNO | ENOPROTOOPT, SECCOMP_RET_ALLOW);
}

/* A choice by the first argument. */
static void emit_one_of(struct builder *builder, const uint32_t *values, size_t count, uint32_t if_one, uint32_t otherwise)
{
	emit_load_argument(builder, 0);
	emit_choice(builder, values, count, if_one, otherwise);
}

static void emit_verdict(struct builder *builder, enum verdict verdict)
{
	switch (verdict) {
	case ALLOW:
		return emit_return(builder, SECCOMP_RET_ALLOW);
	case DENY:
		return emit_return(builder, SECCOMP_RET_ERRNO | EPERM);
	case NO_SUCH_CALL:
		return emit_return(builder, SECCOMP_RET_ERRNO | ENOSYS);
	case LOOK_AT_CLONE:
		return emit_namespace_flags(builder);
	case LOOK_AT_OPTION:
		return emit_socket_option(builder);
	case LOOK_AT_PROCESS:
		return emit_one_of(builder, &(const uint32_t){FIRST_PROCESS}, 1, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
	case LOOK_AT_FAMILY:
		return emit_one_of(builder, families, sizeof families / sizeof families[0], SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
	case LOOK_AT_PERSONALITY:
		return emit_one_of(builder, personalities, sizeof personalities / sizeof personalities[0], SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM);
	}
}

/* A binary search: each inner node compares the number, which stays in the accumulator, with the first of its right half. */
static void emit_search(struct builder *builder, const struct run *runs, size_t count)
{
	if (count == 1)
		return emit_verdict(builder, runs[0].verdict);
	size_t middle = count / 2, node = builder->length;
	emit(builder, BPF_JMP | BPF_JGE | BPF_K, runs[middle].first, 0, 0);
	emit_search(builder, runs, middle);
	size_t distance = builder->length - node - 1;
	if (distance > UINT8_MAX)
		__builtin_trap(); /* a classic jump reaches no farther: the lists have grown too scattered */
	builder->program[node].jt = (uint8_t)distance;
	emit_search(builder, runs + middle, count - middle);
}

static size_t list_runs(struct run runs[NR_NEWEST_KNOWN + 2])
{
	uint8_t verdicts[NR_NEWEST_KNOWN + 2];
	memset(verdicts, DENY, sizeof verdicts);
	for (size_t i = 0; i < sizeof allowed_everywhere / sizeof allowed_everywhere[0]; i++)
		verdicts[allowed_everywhere[i]] = ALLOW;
	for (size_t i = 0; i < sizeof allowed_here / sizeof allowed_here[0]; i++)
		verdicts[allowed_here[i]] = ALLOW;
	verdicts[__NR_clone] = LOOK_AT_CLONE;
	verdicts[__NR_clone3] = NO_SUCH_CALL; /* its flags lie behind a pointer; C libraries fall back to clone */
	verdicts[__NR_socket] = verdicts[__NR_socketpair] = LOOK_AT_FAMILY;
	verdicts[__NR_setsockopt] = LOOK_AT_OPTION;
	/* 65,536 requests in flight for the whole host, counted by nobody; programs then use threads */
	verdicts[__NR_io_setup] = NO_SUCH_CALL;
	/* the limits of Aether, which has the same user id as root inside: one second of processor time would end the sandbox */
	verdicts[__NR_prlimit64] = LOOK_AT_PROCESS;
	verdicts[__NR_personality] = LOOK_AT_PERSONALITY;
	verdicts[NR_NEWEST_KNOWN + 1] = NO_SUCH_CALL;
	size_t count = 0;
	for (size_t number = 0; number < sizeof verdicts; number++)
		if (number == 0 || verdicts[number] != verdicts[number - 1])
			runs[count++] = (struct run){.first = (uint16_t)number, .verdict = verdicts[number]};
	return count;
}

size_t seccomp_build(struct sock_filter program[SECCOMP_PROGRAM_MAX])
{
	struct run runs[NR_NEWEST_KNOWN + 2];
	struct builder builder = {.program = program};
	emit_load(&builder, offsetof(struct seccomp_data, arch));
	emit(&builder, BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCHITECTURE, 1, 0);
	emit_return(&builder, SECCOMP_RET_KILL_PROCESS);
	emit_load(&builder, offsetof(struct seccomp_data, nr));
	emit_search(&builder, runs, list_runs(runs));
	return builder.length;
}

static struct sock_filter filter[SECCOMP_PROGRAM_MAX];
static unsigned short filter_length;

void seccomp_init(void)
{
	filter_length = (unsigned short)seccomp_build(filter);
}

int seccomp_apply(void)
{
	struct sock_fprog program = {.len = filter_length, .filter = filter};
	return (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
