/*
 * Starts Aether as the launcher does, on the host's own root file system: socket, exec directory, ready pipe and cgroups
 * by descriptor, PID 1 of fresh user, pid, mount and IPC namespaces. For tests of Aether alone.
 *
 *   aether-stand AETHER SOCKET EXEC_DIR LIFE_SECONDS V2_DIR|- OOM_FILE|- V1_PIDS_DIR|- [CGROUP_PROCS…]
 *
 * V2_DIR holds `aether` and `payload`. Prints Aether's pid when it is ready. Ends, and Aether with it, on end of input, or with Aether.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UID_BASE = 100000, HIGH_FD = 100, FIXED_FDS = 6, FIRST_GATE_ARGUMENT = 8 };

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "aether-stand: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int high(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	check(fd >= 0 && moved >= 0, "descriptor");
	close(fd);
	return moved;
}

static int listen_on(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	check(strlen(path) < sizeof address.sun_path, "socket path");
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	check(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 64) == 0, path);
	return high(fd);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

static void run_aether(char **argv, int gates, const int *fds)
{
	char *const args[] = {"aether", argv[4], NULL}, *const environment[] = {NULL};
	check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "PDEATHSIG");
	check(setsid() >= 0 && setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0, "become root");
	check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
	check(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0, "/proc");
	check(chdir("/") == 0, "/");
	for (int i = 0; i < FIXED_FDS + gates; i++)
		check(dup2(fds[i], 3 + i) >= 0, "dup2");
	syscall(SYS_close_range, 3 + FIXED_FDS + gates, ~0u, CLOSE_RANGE_CLOEXEC);
	int program = open(argv[1], O_PATH | O_CLOEXEC);
	check(program >= 0, argv[1]);
	syscall(SYS_execveat, program, "", args, environment, AT_EMPTY_PATH);
	check(0, "execveat");
}

int main(int argc, char **argv)
{
	check(argc >= FIRST_GATE_ARGUMENT, "usage");
	int ready[2], go[2], fds[24], gates = argc - FIRST_GATE_ARGUMENT, v2 = strcmp(argv[5], "-") != 0;
	char path[4096], letter = 0, map[64];
	check(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0, "pipe");
	fds[0] = listen_on(argv[2]);
	fds[1] = high(open(argv[3], O_PATH | O_DIRECTORY | O_CLOEXEC));
	fds[2] = high(ready[1]);
	snprintf(path, sizeof path, "%s/payload", argv[5]);
	fds[3] = high(v2 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : open("/dev/null", O_RDWR | O_CLOEXEC));
	fds[4] = high(strcmp(argv[6], "-") != 0 ? open(argv[6], O_RDONLY | O_CLOEXEC) : open("/dev/null", O_RDONLY | O_CLOEXEC));
	fds[5] = high(open(strcmp(argv[7], "-") != 0 ? argv[7] : "/dev/null", O_PATH | O_CLOEXEC));
	for (int i = 0; i < gates; i++)
		fds[FIXED_FDS + i] = high(open(argv[FIRST_GATE_ARGUMENT + i], O_WRONLY | O_CLOEXEC));

	struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC, .exit_signal = SIGCHLD};
	if (v2) {
		snprintf(path, sizeof path, "%s/aether", argv[5]);
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (__u64)open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	int pidfd = -1;
	args.flags |= CLONE_PIDFD;
	args.pidfd = (__u64)(uintptr_t)&pidfd;
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	check(pid >= 0, "clone3");
	if (pid == 0) {
		check(read(go[0], &letter, 1) == 1, "go");
		run_aether(argv, gates, fds);
	}
	snprintf(map, sizeof map, "0 %d 65536", UID_BASE);
	snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
	write_file(path, map);
	snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
	write_file(path, map);
	check(write(go[1], "g", 1) == 1, "go");
	close(fds[2]);
	check(read(ready[0], &letter, 1) == 1 && letter == 'R', "ready");
	printf("%d\n", pid);
	fflush(stdout);
	struct pollfd either[2] = {{.fd = 0, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
	while (poll(either, 2, -1) < 0)
		continue;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
