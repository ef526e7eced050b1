/* Every bound of the launcher, with where the number comes from. */
#ifndef DSEC_LAUNCHER_LIMITS_H
#define DSEC_LAUNCHER_LIMITS_H

enum {
	/* The contract says 70 characters (bus-schemas/limits.ts). */
	ID_BYTES = 72,
	/* A host name of Linux: 64 bytes. */
	HOSTNAME_BYTES = 65,
	/* Base, 16 workspaces, 16 toolkits, rounded up. Linux allows 500. */
	LAYERS_MAX = 64,
	/* Data files below one image: packer/limits.h. */
	IMAGE_DEVICES_MAX = 64,
	/* PATH_MAX of Linux. */
	PATH_BYTES = 4096,
	/* sun_path, with its NUL. */
	SOCKET_PATH_BYTES = 108,
	/* The paper's largest node holds 3,200 containers; each costs one descriptor here, below a hard limit of 20,000. */
	SANDBOXES_MAX = 12000,
	SANDBOX_BUCKETS = 4096,
	/* One Edge with a few connections, and its successor while the old one dies. */
	CONNECTIONS_MAX = 16,
	/* Connections that have not been accepted yet; above, connect(2) fails at once. */
	LISTEN_BACKLOG = 128,
	/* Requests that wait for the end of one launch or destroy: an Edge, its successor, and their repeats. */
	WAITERS_MAX = 8,
	/* A loaded machine starts a sandbox in tens of milliseconds; this much means that something hangs. */
	LAUNCH_TIMEOUT_MS = 20000,
	/* Killing is quick; a process in an uninterruptible disk wait is what takes longer. */
	TEARDOWN_TIMEOUT_MS = 20000,
	FREEZE_TIMEOUT_MS = 5000,
	/* A cgroup stays busy for an instant after its last process: first and longest pause between two looks. */
	RETRY_FIRST_MS = 1,
	RETRY_LONGEST_MS = 64,
	/* For an upper that an overlay is just letting go of: some milliseconds after its last process. Nothing else is done meanwhile. */
	UPPER_TRIES = 25,
	UPPER_TRY_MS = 10,
	/* For a process that was sent SIGKILL to be gone, on a busy machine. */
	HALF_MADE_END_MS = 1000,
	/* For the lock of a launcher that is dying; a living one keeps it. */
	LOCK_WAIT_SECONDS = 2,
	/* Names tried for one directory in the trash before giving up. */
	TRASH_NAMES_MAX = 64,
	/* A launch that is this much older than the destroy of its sandbox is in nobody's pipeline any more. */
	TOMB_KEEP_SECONDS = 24 * 3600,
	/* Tombstones made between two sweeps of old ones: the paper's busiest node makes some 20,000 a day. */
	TOMB_SWEEP_EVERY = 1024,
	/* Hierarchies: unified, memory, cpu, pids, cpuacct, freezer. */
	HIERARCHIES_MAX = 6,
	/* Control groups nest at most so deep below a sandbox: payload, command. */
	CGROUP_DEPTH_MAX = 4,
	/* Longest control file that is read: cgroup.procs of a payload is read in pieces. */
	CONTROL_FILE_BYTES = 4096,
	/* Sandbox n owns the ids 100000 + n × 65536 onwards; the last range must end below 2³². */
	ID_RANGE_FIRST = 100000,
	ID_RANGE_SIZE = 65536,
	SLOT_MAX = 65533,
	/* Of the kernel's process ids this share, and at least so many, stay with the host. */
	HOST_PIDS_DIVISOR = 8,
	HOST_PIDS_MIN = 2048,
	/* A host has 4,096 terminals less a reserve, for all its sandboxes together. */
	TERMINALS_MAX = 128,
	/* What cpu.weight is unless somebody says otherwise. */
	CPU_WEIGHT_USUAL = 100,
	/* Between LOOP_CTL_GET_FREE and LOOP_CONFIGURE somebody else may take the device. */
	LOOP_TRIES_MAX = 32,
	/* Processors described in a sandbox's own /proc/cpuinfo: what fits into the buffer, and more than most machines have. */
	CPUINFO_BYTES = 256 << 10,
	/* Descriptors a sandbox may open: enough for servers, not so many that programs which close all of them crawl. */
	NOFILE_MAX = 65536,
	/* The one limit for core files at which Linux neither writes one nor starts the helper that core_pattern names. */
	CORE_BYTES_NONE = 1,
	/* v1 counts the buffers of sockets apart: so much of the memory limit on top of it, and at least what a few busy connections need. */
	SOCKET_MEMORY_DIVISOR = 4,
	SOCKET_MEMORY_MIB_MIN = 8,
	/* Workers at once: reclaim is bound by processors and by memory, and launches need some of both. */
	JOBS_AT_ONCE = 4,
	/* Requests that wait for a worker: every sandbox of a full node, paused at once. */
	JOBS_WAITING_MAX = 12000,
	/* Half a GiB compresses in a second; a worker that takes this long is stuck behind something else. */
	RECLAIM_TIMEOUT_SECONDS = 40,
	PREFETCH_TIMEOUT_SECONDS = 20,
	PREFETCH_NICE = 10,
	/* Taking a swap area off brings back whatever lies in it. */
	SWAP_TIMEOUT_SECONDS = 100,
	/* Page ranges and pages (8 MiB) of one piece of advice: small enough that threads share a process evenly. */
	ADVICE_RANGES = 512,
	ADVICE_PAGES = 2048,
	ADVICE_THREADS_MAX = 8,
	/* Less than this in a payload is not worth a worker: a shell that sleeps has it. */
	RECLAIM_BYTES_MIN = 768 << 10,
	/* What advice leaves is taken by the control group's own, slower reclaim when it is more than this and this part of the whole. */
	RECLAIM_REST_BYTES = 2 << 20,
	RECLAIM_REST_DIVISOR = 32,
	/* Devices of zram that are looked through for ours. */
	SWAP_DEVICES_MAX = 256,
	/* A swap header counts pages in 32 bits. */
	SWAP_MIB_MAX = 16 << 20,
};

#endif
