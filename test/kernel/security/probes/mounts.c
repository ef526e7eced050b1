/* Ways out of a mount namespace and into new namespaces; device nodes. */
#include "attempt.h"

#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define AT "/tmp/attempt"

/* Where this is allowed, an attempt shall not spoil the next one. */
static void take_own_namespace(void)
{
	if (unshare(CLONE_NEWNS) == 0)
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static long fresh_mount(const char *type, const char *options)
{
	mkdir(AT, 0755);
	return mount("none", AT, type, 0, options);
}

static long mount_proc(void) { return fresh_mount("proc", NULL); }
static long mount_sysfs(void) { return fresh_mount("sysfs", NULL); }
static long mount_tmpfs(void) { return fresh_mount("tmpfs", NULL); }
static long mount_cgroup2(void) { return fresh_mount("cgroup2", NULL); }
static long mount_cgroup1(void) { return fresh_mount("cgroup", "memory"); }
static long mount_devpts(void) { return fresh_mount("devpts", "newinstance"); }
static long mount_overlay(void)
{
	if (fresh_mount("tmpfs", NULL) < 0) /* an upper must not lie on an overlay */
		return -1;
	mkdir(AT "/upper", 0700);
	mkdir(AT "/work", 0700);
	mkdir(AT "/merged", 0700);
	return mount("none", AT "/merged", "overlay", 0, "lowerdir=/dev,upperdir=" AT "/upper,workdir=" AT "/work");
}
static long mount_bind(void)
{
	mkdir(AT, 0755);
	return mount("/proc", AT, NULL, MS_BIND | MS_REC, NULL);
}
static long mount_first_root(void)
{
	mkdir(AT, 0755);
	return mount("/proc/1/root", AT, NULL, MS_BIND, NULL);
}
static long remount_root(void) { return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL); }
static long remount_proc_sys(void)
{
	/* on the host /proc/sys is no mount of its own: make it one, as the sandbox has it */
	mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL);
	return mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL);
}
static long remount_sys(void) { return mount(NULL, "/sys", NULL, MS_REMOUNT | MS_BIND, NULL); }
static long propagation(void) { return mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL); }
static long unmount_mask(void)
{
	mount("/dev/null", "/proc/interrupts", NULL, MS_BIND, NULL);
	return umount2("/proc/interrupts", MNT_DETACH);
}
static long unmount_proc(void) { return umount2("/proc", MNT_DETACH); }
static long fs_open(void) { return syscall(SYS_fsopen, "tmpfs", 0); }
static long tree_clone(void) { return syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE); }
static long tree_move(void)
{
	mkdir(AT, 0755);
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/proc", OPEN_TREE_CLONE);
	return syscall(SYS_move_mount, tree, "", AT_FDCWD, AT, MOVE_MOUNT_F_EMPTY_PATH);
}
static long tree_attributes(void)
{
	struct mount_attr attributes = {.attr_clr = MOUNT_ATTR_RDONLY};
	return syscall(SYS_mount_setattr, AT_FDCWD, "/sys", 0, &attributes, sizeof attributes);
}
static long change_root(void)
{
	mkdir(AT, 0755);
	mount("none", AT, "tmpfs", 0, NULL);
	return syscall(SYS_pivot_root, AT, AT);
}

/* The classic: keep a descriptor above a new root, walk up from it. Says where that ends. */
static long chroot_walk(void)
{
	struct stat end;
	mkdir(AT, 0755);
	int above = open("/", O_RDONLY | O_DIRECTORY);
	if (above < 0 || chroot(AT) < 0 || fchdir(above) < 0)
		return -1;
	for (int i = 0; i < 64; i++)
		if (chdir("..") < 0)
			return -1;
	if (chroot(".") < 0 || stat("/", &end) < 0)
		return -1;
	snprintf(attempt_detail, sizeof attempt_detail, "%lu:%lu", (unsigned long)end.st_dev, (unsigned long)end.st_ino);
	return 0;
}

static long unshare_user(void) { return unshare(CLONE_NEWUSER); }
static long unshare_mount(void) { return unshare(CLONE_NEWNS); }
static long unshare_net(void) { return unshare(CLONE_NEWNET); }
static long unshare_pid(void) { return unshare(CLONE_NEWPID); }
static long unshare_cgroup(void) { return unshare(CLONE_NEWCGROUP); }
static long unshare_time(void) { return unshare(0x80 /* CLONE_NEWTIME */); }

static long clone_with(unsigned long flags)
{
	long child = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0UL);
	if (child == 0)
		_exit(0);
	return child;
}
static long clone_user(void) { return clone_with(CLONE_NEWUSER); }
static long clone_mount(void) { return clone_with(CLONE_NEWNS); }
static long clone_user_mount_net(void) { return clone_with(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET); }
static long clone3_user(void)
{
	struct clone_args arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	long child = syscall(SYS_clone3, &arguments, sizeof arguments);
	if (child == 0)
		_exit(0);
	return child;
}
static long enter_own(void)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY);
	return syscall(SYS_setns, fd, CLONE_NEWNS);
}

static long node(mode_t type, unsigned major, unsigned minor, const char *at)
{
	unlink(at);
	if (mknod(at, type | 0600, makedev(major, minor)) < 0)
		return -1;
	/* an inode alone is nothing; a device is there when it can be opened, or when only the hardware is missing */
	int fd = open(at, O_RDONLY | O_NONBLOCK);
	int error = errno;
	unlink(at);
	return fd >= 0 || error == ENXIO || error == ENODEV || error == ENOMEDIUM ? 0 : attempt_failed(error);
}
static long node_memory(void) { return node(S_IFCHR, 1, 1, "/tmp/node-mem"); }
static long node_disk(void) { return node(S_IFBLK, 8, 0, "/tmp/node-sda"); }
static long node_loop(void) { return node(S_IFBLK, 7, 0, "/tmp/node-loop"); }
static long node_null(void) { return node(S_IFCHR, 1, 3, "/tmp/node-null"); }
static long node_null_in_dev(void) { return node(S_IFCHR, 1, 3, "/dev/node-null"); }
static long node_kernel_log(void) { return node(S_IFCHR, 1, 11, "/dev/node-kmsg"); }
static long node_fuse(void) { return node(S_IFCHR, 10, 229, "/dev/node-fuse"); }

/* The mark of a deletion: the one node that anybody may make. It must not be one on the root, and nothing must open in /dev. */
static long node_whiteout(void)
{
	unlink("/root/node-whiteout");
	if (mknod("/root/node-whiteout", S_IFCHR | 0600, makedev(0, 0)) < 0)
		return -1;
	return unlink("/root/node-whiteout");
}
static long open_whiteout_in_dev(void)
{
	const char *at = "/dev/node-whiteout";
	unlink(at);
	if (mknod(at, S_IFCHR | 0600, makedev(0, 0)) < 0)
		return -1;
	int fd = open(at, O_RDONLY), error = errno;
	unlink(at);
	return fd < 0 ? attempt_failed(error) : fd;
}

static const struct attempt ATTEMPTS_OF[] = {
	{"mount proc", mount_proc}, {"mount sysfs", mount_sysfs}, {"mount tmpfs", mount_tmpfs}, {"mount cgroup2", mount_cgroup2},
	{"mount cgroup", mount_cgroup1}, {"mount devpts", mount_devpts}, {"mount overlay", mount_overlay}, {"bind /proc", mount_bind},
	{"bind /proc/1/root", mount_first_root}, {"remount / writable", remount_root}, {"remount /proc/sys writable", remount_proc_sys},
	{"remount /sys writable", remount_sys}, {"share /", propagation}, {"unmount the mask of /proc/interrupts", unmount_mask}, {"unmount /proc", unmount_proc},
	{"fsopen", fs_open}, {"open_tree clone", tree_clone}, {"move_mount", tree_move}, {"mount_setattr", tree_attributes}, {"pivot_root", change_root},
	{"chroot and walk up", chroot_walk}, {"unshare user", unshare_user}, {"unshare mount", unshare_mount}, {"unshare net", unshare_net},
	{"unshare pid", unshare_pid}, {"unshare cgroup", unshare_cgroup}, {"unshare time", unshare_time}, {"clone user", clone_user},
	{"clone mount", clone_mount}, {"clone user, mount and net", clone_user_mount_net}, {"clone3 user", clone3_user}, {"setns own mount", enter_own},
	{"node 1:1 mem", node_memory}, {"node 8:0 sda", node_disk}, {"node 7:0 loop", node_loop}, {"node 1:3 null", node_null},
	{"node 1:3 null in /dev", node_null_in_dev}, {"node 1:11 kmsg", node_kernel_log}, {"node 10:229 fuse", node_fuse},
	{"node 0:0 whiteout", node_whiteout}, {"open node 0:0 in /dev", open_whiteout_in_dev},
};

int main(void)
{
	attempt_prepare = take_own_namespace;
	attempt_all(ATTEMPTS_OF, ATTEMPTS(ATTEMPTS_OF));
	return 0;
}
