#include "confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Docker's default set without CAP_NET_RAW: packet sockets get past the filters of a cgroup. */
static const uint8_t kept[] = {
	CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FSETID, CAP_FOWNER, CAP_MKNOD, CAP_SETGID, CAP_SETUID,
	CAP_SETFCAP, CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_KILL, CAP_AUDIT_WRITE,
};

enum { KERNEL_SIGNALS = 64 };

int confine_keeps(int capability)
{
	for (unsigned i = 0; i < sizeof kept; i++)
		if (kept[i] == capability)
			return 1;
	return 0;
}

int confine_capabilities(void)
{
	/* the kernel may know more capabilities than these headers: until it says that a number is none */
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
		if (!confine_keeps(capability) && prctl(PR_CAPBSET_DROP, capability) < 0)
			return -1;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2];
	if (syscall(SYS_capget, &header, sets) < 0)
		return -1;
	sets[0].inheritable = sets[1].inheritable = 0;
	if (syscall(SYS_capset, &header, sets) < 0)
		return -1;
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

int confine_process(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2] = {{0}};
	for (unsigned i = 0; i < sizeof kept; i++)
		sets[kept[i] / 32].permitted |= 1u << kept[i] % 32;
	for (int half = 0; half < 2; half++)
		sets[half].effective = sets[half].permitted;
	return (int)syscall(SYS_capset, &header, sets);
}

int confine_signals(void)
{
	sigset_t all;
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return -1;
	/* the kernel's own call: C libraries keep a few numbers for themselves and refuse to touch them */
	static const uint64_t default_action[4]; /* SIG_DFL, no flags, no restorer, empty mask */
	for (int number = 1; number <= KERNEL_SIGNALS; number++)
		if (number != SIGKILL && number != SIGSTOP && syscall(SYS_rt_sigaction, number, default_action, NULL, sizeof(uint64_t)) < 0)
			return -1;
	return 0;
}
