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
	/* Connections that have said nothing yet: as many as an Edge may open at one moment for files and ports. */
	NEWCOMERS_MAX = 256,
	/* A connection with this much unsent is not asked for more and gets no unasked frames. */
	SEND_PAUSE_BYTES = 16 * 1024,
	/* The answers that are still owed then (one per live command, 112 bytes at most) fit on top. */
	SEND_MAX_BYTES = SEND_PAUSE_BYTES + COMMANDS_MAX * 112,
	/* Numbers of signals, the real-time ones too. */
	SIGNAL_MAX = 64,
	EVENTS_PER_TURN = 32,
	/* Default capacity of a pipe: one read empties it. Mapped while a command runs, not at rest. */
	SCRATCH_BYTES = 64 * 1024,
	/* What a terminal may keep beside the 4 KiB of its line discipline: the kernel's limit of one buffer, doubled. */
	TERMINAL_BYTES_MAX = 2 * 64 * 1024,
	/* A log gives space back in whole steps of this: one hole each, and no page in part. */
	PUNCH_BYTES = 1024 * 1024,
	/* Least time between two PROGRESS frames of one command. */
	PROGRESS_INTERVAL_MS = 5,
	/* From fork to exec: only a user's own hanging file system (a FUSE /etc, say) can take longer. */
	START_LIMIT_MS = 10 * 1000,
	/* After a tree was killed, how long the end waits for the last of it to be gone. */
	TREE_GONE_LIMIT_MS = 2000,
	/* Connections of the Edge to servers inside, at once: six descriptors each. */
	RELAYS_MAX = 256,
	/* Those on their way, and how long one may take: the loopback answers at once, a full backlog does not. */
	DIALS_MAX = 256,
	DIAL_LIMIT_MS = 10 * 1000,
	/* Capacity of a pipe, and how often one direction is served before others have their turn. */
	RELAY_BYTES = 64 * 1024,
	RELAY_ROUNDS_MAX = 8,
	/* Between two looks for an Edge that has left while the server inside did not read. */
	RELAY_LOOK_MS = 30 * 1000,
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
	/* The one limit for core files at which Linux neither writes one nor starts the helper that core_pattern names. */
	CORE_BYTES_NONE = 1,
	/* Bytes of one DATA or CHUNK frame: the data plane's chunk. */
	FILE_CHUNK_BYTES = 256 * 1024,
	/* A chunk, or a request with two paths. */
	FILE_FRAME_MAX_BYTES = FILE_CHUNK_BYTES + 64,
	/* Symbolic links in a row, as the kernel counts them. */
	LINKS_MAX = 40,
	/* Levels of a tree: a walk holds one descriptor and 2 KiB for each. A deeper tree is refused by downloads and flattened by removal. */
	WALK_DEPTH_MAX = 4 * 1024,
	/* Files that are removed before it is asked whether somebody still waits for it. */
	WALK_HANGUP_ENTRIES = 256,
	/* Rounds of a removal whose directories somebody fills at the same time. */
	REMOVE_ROUNDS_MAX = 16,
	/* Files with several names that a download remembers at one time, and the bytes of their paths. */
	HARD_LINKS_MAX = 64 * 1024,
	HARD_LINK_PATH_BYTES = 8 * 1024 * 1024,
	/* Path of an entry of an archive. */
	ENTRY_PATH_BYTES = 1024 * 1024,
	/* Extended attributes of one file (the kernel's own limit for all names and for one value), and an extended header around them. */
	XATTR_BYTES = 64 * 1024,
	/* Name of one, with room for characters that are written as three. */
	XATTR_NAME_BYTES = 1024,
	EXTENDED_HEADER_BYTES = 2 * 1024 * 1024,
	/* What an archive says of all its entries, looked at for each of them: remarks, an owner, a time; far more than anyone writes. */
	GLOBAL_RECORDS_BYTES = 64 * 1024,
	/* Pieces of one sparse file: an archive that claims more is refused, a file that has more is carried with some holes filled. */
	SPARSE_PIECES_MAX = 64 * 1024,
	/* Bytes of paths that one answer names as not carried; the others are counted. */
	OMITTED_PATH_BYTES = 64 * 1024,
	/* Directories under one recursive watch. */
	WATCHES_MAX = 8 * 1024,
};

#endif
