/*
 * The launcher: creates and ends the sandboxes of one node, and mounts their images. @paper §3.3
 *
 * It decides nothing: an Edge says what to do, one Edge epoch at a time. It parses nothing that comes from inside a sandbox beyond
 * a report of fixed size. It may die at any moment: live sandboxes go on, and the next launcher finds them by their cgroups and
 * records. node-runtime/launcher/PROTOCOL.md is its interface; launcher.h says what lies on disk.
 */
#include "files.h"
#include "images.h"
#include "launcher.h"
#include "loop.h"
#include "loop_device.h"
#include "sandbox.h"
#include "server.h"
#include "setup.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static const char USAGE[] =
	"usage: dsec-launcher --run DIR --cgroup NAME [--trash DIR] [--spread DIR] [--aether FILE] [--mount-ns FD] [--without-v2] [--old-kernel]\n"
	"  --run DIR       where its socket, records and image mounts are; one launcher per directory\n"
	"  --cgroup NAME   its control group, below the root of each hierarchy\n"
	"  --trash DIR     where the directories of destroyed sandboxes go; same file system as they\n"
	"  --spread DIR    where the sandboxes' directories are made: each in a part of the disk of its own, where the file system can\n"
	"  --aether FILE   the agent; default: dsec-aether beside this program\n"
	"  --mount-ns FD   the mount namespace of a former launcher, to keep its image mounts\n"
	"  --without-v2    use v1 control groups alone\n"
	"  --old-kernel    do as on the oldest supported kernel: loop devices, no detached overlay layers\n";

static int parse_options(int argc, char **argv, struct options *options)
{
	static const struct option LONG[] = {
		{"run", required_argument, NULL, 'r'}, {"cgroup", required_argument, NULL, 'c'}, {"trash", required_argument, NULL, 't'},
		{"spread", required_argument, NULL, 's'},
		{"aether", required_argument, NULL, 'a'}, {"mount-ns", required_argument, NULL, 'm'}, {"without-v2", no_argument, NULL, '1'},
		{"old-kernel", no_argument, NULL, 'o'}, {NULL, 0, NULL, 0},
	};
	*options = (struct options){.mount_ns = -1};
	for (int letter; (letter = getopt_long(argc, argv, "", LONG, NULL)) != -1;)
		switch (letter) {
		case 'r': options->run = optarg; break;
		case 'c': options->cgroup = optarg; break;
		case 't': options->trash = optarg; break;
		case 's': options->spread = optarg; break;
		case 'a': options->aether = optarg; break;
		case 'm': options->mount_ns = atoi(optarg); break;
		case '1': options->without_v2 = true; break;
		case 'o': options->old_kernel = true; break;
		default: return -1;
		}
	return optind == argc && options->run && options->cgroup ? 0 : -1;
}

/* Tells the starter, which may be waiting, and lets go of its pipe. */
static int announce(struct fault *fault)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return fault_errno(fault, "open /dev/null");
	ssize_t written = write(STDOUT_FILENO, "ready\n", 6);
	(void)written; /* a starter that has gone does not matter */
	int result = dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ? fault_errno(fault, "let go of standard output") : 0;
	close_fd(&null);
	return result;
}

static int in_flight(struct sandbox *sandbox, void *context)
{
	(void)context;
	return sandbox->phase == SANDBOX_LAUNCHING || sandbox->phase == SANDBOX_ENDING;
}

static void leave_empty(void)
{
	char path[PATH_BYTES + 16];
	close_fd(&launcher.empty_fd);
	snprintf(path, sizeof path, "%s/empty", launcher.run);
	umount2(path, MNT_DETACH);
	rmdir(path);
}

/* Removes what is empty. Records, tombstones and live sandboxes stay for the next launcher. */
static void clean_up(void)
{
	server_stop_listening();
	images_close();
	loop_devices_tidy();
	cgroup_close(&launcher.cgroups, launcher.cgroup_name);
	leave_empty();
	if (chdir("/") == 0) {
		unlinkat(launcher.run_fd, "root", AT_REMOVEDIR);
		unlinkat(launcher.run_fd, "layers", AT_REMOVEDIR);
		unlinkat(launcher.run_fd, "stage/cgroup2", AT_REMOVEDIR);
		unlinkat(launcher.run_fd, "stage", AT_REMOVEDIR);
		unlinkat(launcher.run_fd, "sandboxes", AT_REMOVEDIR);
		unlinkat(launcher.run_fd, "lock", 0);
	}
	server_close();
}

int main(int argc, char **argv)
{
	struct options options;
	struct fault fault;
	if (parse_options(argc, argv, &options) < 0) {
		fputs(USAGE, stderr);
		return 2;
	}
	if (set_up(&options, &fault) < 0 || announce(&fault) < 0) {
		fprintf(stderr, "dsec-launcher: %s (%s)\n", fault.message, fault.step);
		return 1;
	}
	while (!launcher.quitting || sandbox_each(in_flight, NULL))
		if (loop_turn() < 0) {
			fprintf(stderr, "dsec-launcher: event loop: %s\n", strerror(errno));
			return 1;
		}
	clean_up();
	return 0;
}
