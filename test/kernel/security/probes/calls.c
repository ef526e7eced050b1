/*
 * System calls that nobody in a sandbox needs. The arguments do no harm where a call is allowed: what the kernel then says of them
 * (EINVAL, EFAULT, …) shows that it was asked. Such an answer is printed as `reached ERROR`.
 */
#include "attempt.h"

#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define BAD ((void *)8)

static long reached(long result)
{
	if (result >= 0)
		return result;
	if (errno == EPERM || errno == ENOSYS || errno == EACCES)
		return -1;
	snprintf(attempt_detail, sizeof attempt_detail, "reached %s", strerrorname_np(errno));
	return 0;
}

static long key_search(void) { return reached(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0)); }
static long key_add(void) { return reached(syscall(SYS_add_key, "user", "attempt", "x", 1UL, KEY_SPEC_PROCESS_KEYRING)); }
static long key_request(void) { return reached(syscall(SYS_request_key, "user", "attempt", NULL, KEY_SPEC_PROCESS_KEYRING)); }
static long ring(void) { return reached(syscall(SYS_io_uring_setup, 1, BAD)); }
static long program(void)
{
	union bpf_attr attributes = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	return reached(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));
}
static long performance(void)
{
	struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attributes, .config = PERF_COUNT_SW_TASK_CLOCK};
	return reached(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0UL));
}
static long fault_handler(void) { return reached(syscall(SYS_userfaultfd, 0)); }
static long kernel_load(void) { return reached(syscall(SYS_kexec_load, 0UL, ~0UL, BAD, 0UL)); }
static long kernel_load_file(void) { return reached(syscall(SYS_kexec_file_load, -1, -1, 0UL, NULL, 0UL)); }
static long module_load(void) { return reached(syscall(SYS_init_module, BAD, 1UL, "")); }
static long module_load_file(void) { return reached(syscall(SYS_finit_module, -1, "", 0)); }
static long module_unload(void) { return reached(syscall(SYS_delete_module, BAD, 0)); }
static long handle_open(void)
{
	struct { struct file_handle handle; unsigned char bytes[64]; } any = {.handle = {.handle_bytes = 8, .handle_type = 1}};
	return reached(syscall(SYS_open_by_handle_at, AT_FDCWD, &any, O_RDONLY));
}
static long ports(void) { return reached(syscall(SYS_ioperm, 0x80UL, 1UL, 1)); }
static long port_level(void) { return reached(syscall(SYS_iopl, 0)); }
static long kernel_log(void)
{
	char bytes[64];
	return reached(syscall(SYS_syslog, 3, bytes, sizeof bytes));
}
static long clock_set(void) { return reached(syscall(SYS_clock_settime, 0, BAD)); }
static long day_set(void) { return reached(syscall(SYS_settimeofday, BAD, NULL)); }
static long reboot_machine(void) { return reached(syscall(SYS_reboot, 0, 0, 0, NULL)); }
static long swap_on(void) { return reached(syscall(SYS_swapon, "/nowhere", 0)); }
static long swap_off(void) { return reached(syscall(SYS_swapoff, "/nowhere")); }
static long accounting(void) { return reached(syscall(SYS_acct, "/nowhere")); }
static long quota(void) { return reached(syscall(SYS_quotactl, 0, NULL, 0, NULL)); }
static long host_name(void) { return reached(syscall(SYS_sethostname, BAD, 1UL)); }
static long domain_name(void) { return reached(syscall(SYS_setdomainname, BAD, 1UL)); }
static long hang_up(void) { return reached(syscall(SYS_vhangup)); }
static long persona(void) { return reached(personality(ADDR_NO_RANDOMIZE)); }
static long asynchronous(void)
{
	unsigned long context = 0;
	return reached(syscall(SYS_io_setup, 1, &context));
}
static long watch_all(void) { return reached(syscall(SYS_fanotify_init, 0, 0)); }
static long memory_policy(void) { return reached(syscall(SYS_set_mempolicy, 0, NULL, 0UL)); }
static long pages_migrate(void) { return reached(syscall(SYS_migrate_pages, 0, 0UL, NULL, NULL)); }
/* bit 30 of a number asks for the x32 form of it */
static long other_abi(void) { return reached(syscall(0x40000000 + SYS_getpid)); }
static long old_abi(void)
{
#ifdef __x86_64__
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20 /* getpid */) : "memory", "r8", "r9", "r10", "r11");
	return result < 0 ? attempt_failed((int)-result) : result;
#else
	return attempt_failed(ENOSYS);
#endif
}
static long newest(void) { return reached(syscall(4095)); }

static long bounding_set(void)
{
	uint64_t set = 0;
	for (int capability = 0; capability < 64; capability++)
		if (prctl(PR_CAPBSET_READ, capability) == 1)
			set |= 1ULL << capability;
	snprintf(attempt_detail, sizeof attempt_detail, "%llx", (unsigned long long)set);
	return 0;
}
static long administer(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2] = {{.effective = 1u << CAP_SYS_ADMIN, .permitted = 1u << CAP_SYS_ADMIN}};
	return syscall(SYS_capset, &header, sets);
}

static const struct attempt ATTEMPTS_OF[] = {
	{"keyctl", key_search}, {"add_key", key_add}, {"request_key", key_request}, {"io_uring_setup", ring}, {"bpf", program},
	{"perf_event_open", performance}, {"userfaultfd", fault_handler}, {"kexec_load", kernel_load}, {"kexec_file_load", kernel_load_file},
	{"init_module", module_load}, {"finit_module", module_load_file}, {"delete_module", module_unload}, {"open_by_handle_at", handle_open},
	{"ioperm", ports}, {"iopl", port_level}, {"syslog", kernel_log}, {"clock_settime", clock_set}, {"settimeofday", day_set}, {"reboot", reboot_machine},
	{"swapon", swap_on}, {"swapoff", swap_off}, {"acct", accounting}, {"quotactl", quota}, {"sethostname", host_name}, {"setdomainname", domain_name},
	{"vhangup", hang_up}, {"personality", persona}, {"fanotify_init", watch_all}, {"set_mempolicy", memory_policy}, {"migrate_pages", pages_migrate},
	{"io_setup", asynchronous}, {"x32 getpid", other_abi}, {"i386 getpid", old_abi}, {"number 4095", newest}, {"capset CAP_SYS_ADMIN", administer},
	{"bounding set", bounding_set},
};

int main(void)
{
	attempt_all(ATTEMPTS_OF, ATTEMPTS(ATTEMPTS_OF));
	return 0;
}
