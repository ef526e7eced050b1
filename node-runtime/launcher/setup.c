#include "setup.h"

#include "facts.h"
#include "files.h"
#include "images.h"
#include "launcher.h"
#include "loop.h"
#include "loop_device.h"
#include "sandbox.h"
#include "server.h"
#include "tombs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* A cgroup name is a path below the hierarchies' roots. */
static bool is_cgroup_name(const char *text)
{
	return *text && strlen(text) < sizeof launcher.cgroup_name && *text != '/' && *text != '.' && !strstr(text, "..") && !strstr(text, "//");
}

static void interrupt(int signal_number)
{
	(void)signal_number;
}

/* Waits a little: a launcher that was just killed holds the lock until the kernel is done with it. */
static int lock_within(int lock, int seconds)
{
	struct sigaction wake = {.sa_handler = interrupt}, old; /* without SA_RESTART */
	sigaction(SIGALRM, &wake, &old);
	alarm((unsigned)seconds);
	int result = flock(lock, LOCK_EX);
	alarm(0);
	sigaction(SIGALRM, &old, NULL);
	return result;
}

/* Held until the process ends; children close it at exec. */
static int take_lock(struct fault *fault)
{
	int lock = openat(launcher.run_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0)
		return fault_errno(fault, "open lock");
	if (lock_within(lock, LOCK_WAIT_SECONDS) < 0)
		return fault_set(fault, CODE_BUSY, "lock", errno, "another launcher serves %s", launcher.run);
	return 0;
}

/*
 * ext4 puts a directory beside its parent, so all sandboxes would take their inodes from one group of blocks. Without a journal it also
 * passes over every inode that was deleted there in the last minutes, one by one, each time it makes a file: after a few hundred sandboxes
 * that is most of what a launch costs. A directory with this flag has its children spread over the disk. Others do not know it: no matter.
 */
static void spread_children(const char *path)
{
	int flags = 0, fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_TOPDIR_FL)) {
		flags |= FS_TOPDIR_FL;
		ioctl(fd, FS_IOC_SETFLAGS, &flags);
	}
	close_fd(&fd);
}

static int open_directories(const struct options *options, struct fault *fault)
{
	if (ensure_dir(AT_FDCWD, options->run, 0711) < 0 || !realpath(options->run, launcher.run))
		return fault_errno(fault, "open --run");
	if (options->trash && (ensure_dir(AT_FDCWD, options->trash, 0700) < 0 || !realpath(options->trash, launcher.trash)))
		return fault_errno(fault, "open --trash");
	if (options->spread)
		spread_children(options->spread);
	launcher.run_fd = open(launcher.run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (launcher.run_fd < 0)
		return fault_errno(fault, "open --run");
	return take_lock(fault);
}

/* Directories that are entered or mounted on are opened after the namespace is ours: a descriptor belongs to one tree. */
static int open_subdirectories(struct fault *fault)
{
	const struct {
		const char *name;
		mode_t mode;
		int *fd;
	} directories[] = {
		{"layers", 0700, &launcher.layers_fd}, {"sandboxes", 0700, &launcher.records_fd}, {"tombs", 0700, &launcher.tombs_fd},
		{"stage", 0700, &launcher.stage_fd},   {"root", 0711, &launcher.root_fd},
		{"empty", 0755, &launcher.empty_fd},
	};
	char path[PATH_BYTES + 16];
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
		snprintf(path, sizeof path, "%s/%s", launcher.run, directories[i].name);
		if ((*directories[i].fd = open_dir(AT_FDCWD, path, directories[i].mode)) < 0)
			return fault_errno(fault, "open directory below --run");
	}
	/* children start here and attach their root to it */
	return fchdir(launcher.root_fd) < 0 ? fault_errno(fault, "enter root") : 0;
}

/* Mounts of the host that come later are seen; ours are not seen by the host. */
static int enter_mount_namespace(int given, struct fault *fault)
{
	if (given >= 0)
		return setns(given, CLONE_NEWNS) < 0 ? fault_errno(fault, "join --mount-ns") : 0;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return fault_errno(fault, "make mount namespace");
	return 0;
}

/*
 * An empty read-only directory, laid over what sandboxes must not see: one file system for all of them, since each one that is mounted
 * costs memory in every memory group. Nobody inside may write to it: it belongs to the host's root and is read-only itself. Attached,
 * because older kernels clone nothing else; with a former launcher's namespace comes its mount.
 */
static int open_empty(struct fault *fault)
{
	struct stat above, empty;
	char path[PATH_BYTES + 16];
	if (fstat(launcher.run_fd, &above) < 0 || fstat(launcher.empty_fd, &empty) < 0)
		return fault_errno(fault, "look at empty directory");
	if (above.st_dev != empty.st_dev)
		return 0;
	int context = fsopen("tmpfs", FSOPEN_CLOEXEC), mounted = -1;
	if (context >= 0 && fsconfig(context, FSCONFIG_SET_STRING, "mode", "555", 0) == 0 && fsconfig(context, FSCONFIG_SET_FLAG, "ro", NULL, 0) == 0 &&
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mounted = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	close_fd(&context);
	snprintf(path, sizeof path, "%s/empty", launcher.run);
	if (mounted < 0 || move_mount(mounted, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fault_errno(fault, "mount empty directory");
	close_fd(&launcher.empty_fd);
	launcher.empty_fd = mounted;
	return 0;
}

/* A copy in memory: it can be run where /run is noexec, is 0711 whatever the installed file is, and stays when that is replaced. */
static int load_aether(const char *path, struct fault *fault)
{
	struct stat status;
	int file = open(path, O_RDONLY | O_CLOEXEC), copy = -1;
	if (file < 0)
		return fault_set(fault, CODE_MISSING, "open Aether", errno, "cannot open %s: %s; build it, or say --aether", path, strerror(errno));
	copy = memfd_create("aether", MFD_CLOEXEC | MFD_EXEC);
	if (copy < 0 && errno == EINVAL) /* kernels before 6.3 */
		copy = memfd_create("aether", MFD_CLOEXEC);
	if (copy < 0 || fstat(file, &status) < 0 || fchmod(copy, 0711) < 0)
		return fault_errno(fault, "copy Aether");
	for (off_t left = status.st_size; left > 0;) {
		ssize_t copied = sendfile(copy, file, NULL, (size_t)left);
		if (copied <= 0)
			return fault_errno(fault, "copy Aether");
		left -= copied;
	}
	close(file);
	char link[32];
	snprintf(link, sizeof link, "/proc/self/fd/%d", copy);
	launcher.aether_fd = open(link, O_PATH | O_CLOEXEC); /* a descriptor for writing would make exec fail with ETXTBSY */
	close(copy);
	return launcher.aether_fd < 0 ? fault_errno(fault, "copy Aether") : 0;
}

static int find_aether(const struct options *options, struct fault *fault)
{
	char path[PATH_BYTES];
	if (options->aether)
		return load_aether(options->aether, fault);
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "dsec-aether");
	if (length < 0)
		return fault_errno(fault, "find own program");
	path[length] = '\0';
	strcpy(strrchr(path, '/') + 1, "dsec-aether");
	return load_aether(path, fault);
}

/* What the starter left behind must not reach a sandbox. */
static void reset_process(void)
{
	struct rlimit files;
	sigset_t none;
	for (int signal_number = 1; signal_number < NSIG; signal_number++)
		signal(signal_number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN); /* of our own; a sandbox's first process gets the default back */
	umask(0);
	clearenv();
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

int set_up(const struct options *options, struct fault *fault)
{
	if (!is_cgroup_name(options->cgroup))
		return fault_set(fault, CODE_INVALID, "parse --cgroup", EINVAL, "'%s' is not the name of a control group", options->cgroup);
	snprintf(launcher.cgroup_name, sizeof launcher.cgroup_name, "%s", options->cgroup);
	launcher.old_kernel = options->old_kernel;
	reset_process();
	if (find_aether(options, fault) < 0 || open_directories(options, fault) < 0 || enter_mount_namespace(options->mount_ns, fault) < 0 ||
	    open_subdirectories(fault) < 0 || open_empty(fault) < 0)
		return -1;
	if (loop_open() < 0)
		return fault_errno(fault, "open event loop");
	if (cgroup_open(&launcher.cgroups, launcher.cgroup_name, options->without_v2, launcher.stage_fd, fault) < 0)
		return -1;
	tombs_expire();
	loop_devices_note();
	facts_learn();
	if (images_adopt(fault) != 0 || sandbox_adopt_all(fault) < 0)
		return -1;
	return server_open(fault);
}
