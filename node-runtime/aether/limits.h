/* Every bound of Aether, with where the number comes from. */
#ifndef AETHER_LIMITS_H
#define AETHER_LIMITS_H

enum {
	/* A life longer than half a century is a mistake. */
	LIFE_SECONDS_LIMIT = 50 * 366 * 24 * 3600,
	/* Commands alive or lingering at once: four descriptors each stay far below the 20,000 of a common hard limit. */
	COMMANDS_MAX = 1024,
	/* Edges connected at once: one, and its successor while the old one dies. The oldest is dropped beyond. */
	CONNECTIONS_MAX = 8,
	/* A connection with this much unsent is not asked for more and gets no unasked frames. */
	SEND_PAUSE_BYTES = 16 * 1024,
	/* The answers that are still owed then (one per live command, 72 bytes at most) fit on top. */
	SEND_MAX_BYTES = SEND_PAUSE_BYTES + COMMANDS_MAX * 72,
	EVENTS_PER_TURN = 32,
	/* Default capacity of a pipe: one read empties it. Mapped while a command runs, not at rest. */
	SCRATCH_BYTES = 64 * 1024,
	/* Least time between two PROGRESS frames of one command. */
	PROGRESS_INTERVAL_MS = 5,
	/* From fork to exec: only a user's own hanging file system (a FUSE /etc, say) can take longer. */
	START_LIMIT_MS = 10 * 1000,
	/* After a tree was killed, how long the end waits for the last of it to be gone. */
	TREE_GONE_LIMIT_MS = 2000,
	/* Between two tries to remove a cgroup whose last process is still leaving the CPU. */
	TREE_LEAVING_RETRY_MS = 5,
	/* An exit record that found no space is written again this much later. */
	RECORD_RETRY_MS = 1000,
	/* Rounds of "kill what is listed" where the kernel has no cgroup.kill: each round catches what forked during the last. */
	KILL_ROUNDS_MAX = 64,
	/* Processes that one round of the walk over /proc considers. */
	WALK_PROCESSES_MAX = 4096,
	/* A file of users or groups is read up to here; longer lines than one buffer are skipped. */
	IDENTITY_FILE_MAX_BYTES = 1024 * 1024,
	IDENTITY_LINE_BYTES = 4096,
	IDENTITY_GROUPS_MAX = 256,
	IDENTITY_NAME_BYTES = 65,
	IDENTITY_HOME_BYTES = 1024,
	/* PATH_MAX of Linux. */
	PATH_BYTES = 4096,
	/* Gates that a command's first process passes: v1 has fewer hierarchies than this. */
	GATES_MAX = 16,
	/* Soft limit of descriptors in a command: select(2) in old programs breaks above. */
	COMMAND_NOFILE_SOFT = 1024,
};

#endif
