/* Which layout a host has, from its mountinfo; and what is written to and read from its files, on a directory that stands for the tree. */
#include "cgroup.h"
#include "check.h"
#include "files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char V2_HOST[] = "24 29 0:22 / /proc rw - proc proc rw\n"
			      "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";
static const char V1_HOST[] = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
			      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
			      "36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n"
			      "37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
			      "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
			      "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";
static const char BARE_V2[] = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

static char *joined(const char *a, const char *b)
{
	static char text[4096];
	snprintf(text, sizeof text, "%s%s", a, b);
	return text;
}

static unsigned all_controllers(const struct cgroup_tree *tree)
{
	unsigned all = 0;
	for (int i = 0; i < tree->count; i++)
		all |= tree->list[i].controllers;
	return all;
}

static void chooses_v2(void)
{
	struct cgroup_tree tree;
	CHECK(cgroup_choose(&tree, V2_HOST, "cpuset cpu io memory pids\n", false) == 0);
	CHECK(tree.layout == CGROUP_V2 && tree.count == 1 && tree.list[0].unified);
	CHECK(strcmp(tree.list[0].mount, "/sys/fs/cgroup") == 0);
	CHECK(all_controllers(&tree) == CONTROL_NEEDED);
}

static void chooses_v1(void)
{
	struct cgroup_tree tree;
	CHECK(cgroup_choose(&tree, V1_HOST, "", false) == 0);
	CHECK(tree.layout == CGROUP_V1 && tree.count == 4); /* memory, cpu with cpuacct, freezer, pids */
	CHECK(tree.list[0].controllers == CONTROL_MEMORY);
	CHECK((all_controllers(&tree) & (CONTROL_NEEDED | CONTROL_CPUACCT | CONTROL_FREEZER)) == (CONTROL_NEEDED | CONTROL_CPUACCT | CONTROL_FREEZER));
}

static void chooses_mixed(void)
{
	struct cgroup_tree tree;
	CHECK(cgroup_choose(&tree, joined(V1_HOST, BARE_V2), "hugetlb\n", false) == 0);
	CHECK(tree.layout == CGROUP_MIXED && tree.count == 4 && tree.list[0].unified && tree.list[0].controllers == 0);
	CHECK(tree.list[1].controllers == CONTROL_MEMORY && tree.list[1].flat && !tree.list[0].flat && !tree.list[2].flat && !tree.list[3].flat);
	CHECK(cgroup_choose(&tree, joined(V1_HOST, BARE_V2), "hugetlb\n", true) == 0 && tree.layout == CGROUP_V1);
	CHECK(!tree.list[0].flat); /* there it says which sandboxes exist, and which process is Aether */
}

static void refuses_a_host_without_controllers(void)
{
	struct cgroup_tree tree;
	CHECK(cgroup_choose(&tree, V2_HOST, "cpuset io\n", false) == -1);
	CHECK(cgroup_choose(&tree, "", "", false) == -1);
	CHECK(cgroup_choose(&tree, "garbage\n\n - cgroup\n", "", false) == -1);
}

static void touch(int dir, const char *path)
{
	int fd = openat(dir, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	close(fd);
}

static void expect(int dir, const char *path, const char *wanted)
{
	char text[256];
	CHECK(read_text(dir, path, text, sizeof text) >= 0);
	CHECK(strcmp(text, wanted) == 0);
}

static void v2_limits(void)
{
	static const char *const FILES[] = {"cgroup.procs", "cgroup.subtree_control", "cpu.weight", "payload/cgroup.procs", "payload/cgroup.threads", "payload/cgroup.subtree_control",
					    "payload/memory.max", "payload/memory.swap.max", "payload/cpu.max", "payload/pids.max", "payload/cgroup.freeze"};
	char directory[] = "/tmp/dsec-cgroup-test-XXXXXX", path[128];
	CHECK(mkdtemp(directory));
	struct cgroup_tree tree = {.layout = CGROUP_V2, .count = 1, .list = {{.unified = true, .controllers = CONTROL_NEEDED, .fd = open(directory, O_RDONLY | O_DIRECTORY)}}};
	int dir = tree.list[0].fd;
	CHECK(mkdirat(dir, "sb-x", 0755) == 0 && mkdirat(dir, "sb-x/payload", 0755) == 0);
	for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
		snprintf(path, sizeof path, "sb-x/%s", FILES[i]);
		touch(dir, path);
	}
	struct cgroup_limits limits = {.memory_mib = 64, .swap_mib = 16, .cpu_millis = 1500, .cpu_weight = 250, .pids = 32};
	struct fault fault;
	CHECK(cgroup_make(&tree, "sb-x", getuid(), &limits, &fault) == 0);
	CHECK(file_exists(dir, "sb-x/agent"));
	CHECK(cgroup_seal(&tree, "sb-x", &limits, &fault) == 0);
	expect(dir, "sb-x/cgroup.subtree_control", "+memory +cpu +pids");
	expect(dir, "sb-x/payload/memory.max", "67108864");
	expect(dir, "sb-x/payload/memory.swap.max", "16777216");
	expect(dir, "sb-x/cpu.weight", "250");
	expect(dir, "sb-x/payload/cpu.max", "37500 25000");
	expect(dir, "sb-x/payload/pids.max", "32");
	limits.cpu_millis = 10; /* the kernel takes no quota below a millisecond */
	CHECK(cgroup_seal(&tree, "sb-x", &limits, &fault) == 0);
	expect(dir, "sb-x/payload/cpu.max", "1000 100000");
	CHECK(cgroup_freeze(&tree, "sb-x", true) == 0);
	expect(dir, "sb-x/payload/cgroup.freeze", "1");
	for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
		snprintf(path, sizeof path, "sb-x/%s", FILES[i]);
		CHECK(unlinkat(dir, path, 0) == 0);
	}
	CHECK(cgroup_remove(&tree, "sb-x") == 0 && !file_exists(dir, "sb-x"));
	CHECK(cgroup_remove(&tree, "sb-x") == 0); /* gone is as good */
	close(dir);
	CHECK(rmdir(directory) == 0);
}

static void write_file(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* The files of one payload's memory, in a directory that stands for the tree. */
struct memory_stand {
	char directory[40];
	struct cgroup_tree tree;
	int dir;
};

static void stand_up(struct memory_stand *stand, bool v2)
{
	strcpy(stand->directory, "/tmp/dsec-memory-test-XXXXXX");
	CHECK(mkdtemp(stand->directory));
	stand->dir = open(stand->directory, O_RDONLY | O_DIRECTORY);
	stand->tree = (struct cgroup_tree){
		.layout = v2 ? CGROUP_V2 : CGROUP_V1,
		.count = 1,
		.list = {{.unified = v2, .controllers = CONTROL_NEEDED, .fd = stand->dir}},
	};
	CHECK(mkdirat(stand->dir, "sb-x", 0755) == 0 && mkdirat(stand->dir, "sb-x/payload", 0755) == 0);
}

static void take_down(struct memory_stand *stand, const char *const *files, size_t count)
{
	char path[128];
	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof path, "sb-x/payload/%s", files[i]);
		CHECK(unlinkat(stand->dir, path, 0) == 0);
	}
	CHECK(unlinkat(stand->dir, "sb-x/payload", AT_REMOVEDIR) == 0 && unlinkat(stand->dir, "sb-x", AT_REMOVEDIR) == 0);
	close(stand->dir);
	CHECK(rmdir(stand->directory) == 0);
}

static void v2_pause_opens_swap_and_reclaims(void)
{
	static const char *const FILES[] = {"memory.swap.max", "memory.reclaim", "memory.stat", "memory.current", "memory.swap.current"};
	struct memory_stand stand;
	struct cgroup_memory memory;
	stand_up(&stand, true);
	/* a kernel without swap has no file for it, and that is no failure */
	CHECK(cgroup_allow_swap(&stand.tree, "sb-x", true, 0) == 0);
	write_file(stand.dir, "sb-x/payload/memory.swap.max", "0");
	CHECK(cgroup_allow_swap(&stand.tree, "sb-x", true, 16) == 0);
	expect(stand.dir, "sb-x/payload/memory.swap.max", "max");
	write_file(stand.dir, "sb-x/payload/memory.reclaim", "");
	cgroup_reclaim(&stand.tree, "sb-x", 209715200);
	expect(stand.dir, "sb-x/payload/memory.reclaim", "209715200");
	write_file(stand.dir, "sb-x/payload/memory.swap.max", "");
	CHECK(cgroup_allow_swap(&stand.tree, "sb-x", false, 16) == 0);
	expect(stand.dir, "sb-x/payload/memory.swap.max", "16777216");

	write_file(stand.dir, "sb-x/payload/memory.stat", "anon 1000\nfile 5000\nkernel 7\nshmem 200\nfile_mapped 9\nanon_thp 3\n");
	CHECK(cgroup_read_memory(&stand.tree, "sb-x", &memory) == -1); /* half of the files: it is just being removed */
	write_file(stand.dir, "sb-x/payload/memory.current", "6300\n");
	CHECK(cgroup_read_memory(&stand.tree, "sb-x", &memory) == 0);
	CHECK(memory.swapped_bytes == 0); /* no swap in this kernel */
	write_file(stand.dir, "sb-x/payload/memory.swap.current", "4096\n");
	CHECK(cgroup_read_memory(&stand.tree, "sb-x", &memory) == 0);
	CHECK(memory.reclaimable_bytes == 1200 && memory.file_bytes == 4800 && memory.used_bytes == 6300 && memory.swapped_bytes == 4096);
	take_down(&stand, FILES, sizeof FILES / sizeof *FILES);
}

static void v1_pause_inclines_to_swap_and_empties(void)
{
	static const char *const FILES[] = {"memory.swappiness", "memory.force_empty", "memory.stat", "memory.usage_in_bytes"};
	struct memory_stand stand;
	struct cgroup_memory memory;
	stand_up(&stand, false);
	write_file(stand.dir, "sb-x/payload/memory.swappiness", "");
	CHECK(cgroup_allow_swap(&stand.tree, "sb-x", false, 0) == 0);
	expect(stand.dir, "sb-x/payload/memory.swappiness", "0");
	CHECK(cgroup_allow_swap(&stand.tree, "sb-x", true, 0) == 0);
	expect(stand.dir, "sb-x/payload/memory.swappiness", "100");
	write_file(stand.dir, "sb-x/payload/memory.force_empty", "");
	cgroup_reclaim(&stand.tree, "sb-x", 209715200);
	expect(stand.dir, "sb-x/payload/memory.force_empty", "0");
	write_file(stand.dir, "sb-x/payload/memory.stat", "cache 5000\nrss 1000\nshmem 200\nswap 4096\n");
	write_file(stand.dir, "sb-x/payload/memory.usage_in_bytes", "6300\n");
	CHECK(cgroup_read_memory(&stand.tree, "sb-x", &memory) == 0);
	CHECK(memory.reclaimable_bytes == 1200 && memory.file_bytes == 4800 && memory.used_bytes == 6300 && memory.swapped_bytes == 4096);
	take_down(&stand, FILES, sizeof FILES / sizeof *FILES);
}

int main(void)
{
	RUN(chooses_v2);
	RUN(chooses_v1);
	RUN(chooses_mixed);
	RUN(refuses_a_host_without_controllers);
	RUN(v2_limits);
	RUN(v2_pause_opens_swap_and_reclaims);
	RUN(v1_pause_inclines_to_swap_and_empties);
	return 0;
}
