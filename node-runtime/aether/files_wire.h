/*
 * What is spoken on a connection that FILES has handed to a worker (node-runtime/launcher/PROTOCOL.md). Integers are
 * little-endian, bodies as they lie in memory. Names are bytes: anything but NUL and, within one name, '/'.
 */
#ifndef AETHER_FILES_WIRE_H
#define AETHER_FILES_WIRE_H

#include "wire.h"

enum file_frame {
	FILE_STAT = 32,
	FILE_LIST = 33,
	FILE_READ = 34,
	FILE_WRITE = 35,
	FILE_APPEND = 36,
	FILE_MKDIR = 37,
	FILE_MOVE = 38,
	FILE_REMOVE = 39,
	FILE_PACK = 40,
	FILE_UNPACK = 41,
	FILE_WATCH = 42,
	FILE_CHUNK = 48,
	FILE_COMMIT = 49,
	FILE_READY = 80,
	FILE_ENTRY = 81,
	FILE_DATA = 82,
	FILE_END = 83,
	FILE_FAILED = 84,
	FILE_OMITTED = 85,
	FILE_PARTIAL = 86,
};

/* Why a request failed, where errno does not say it. */
enum file_reason {
	REASON_ERRNO = 0,
	REASON_NOT_REGULAR = 1,
	REASON_NO_USER = 2,
	REASON_UNSAFE_ENTRY = 3, /* an archive's entry would leave the destination */
	REASON_BAD_ARCHIVE = 4,
	REASON_NO_PROCESS = 5, /* no process could be made for the worker */
	REASON_MALFORMED = 6,  /* a request that PROTOCOL.md does not know; the connection ends */
};

/* What of a tree was not carried. */
enum file_omission {
	OMITTED_FIFO = 1,
	OMITTED_SOCKET = 2,
	OMITTED_DEVICE = 3,
	OMITTED_OWNER = 4,
	OMITTED_SET_ID = 5,
	OMITTED_XATTR = 6,
	OMITTED_HARD_LINK = 7,  /* carried as a file of its own */
	OMITTED_MOUNT = 8,      /* a kernel's file system */
	OMITTED_UNREADABLE = 9, /* the user may not read it */
	OMITTED_CHANGED = 10,   /* became shorter while it was read: filled with zeros */
	OMITTED_TYPE = 11,      /* an entry of a kind that nobody here knows */
	OMITTED_ACL = 12,       /* an access control list that the archive has as text */
	OMITTED_FLAGS = 13,     /* file flags: immutable, no dump */
	OMITTED_RECORD = 14,    /* something said of a file in words that nobody here knows */
};

enum file_type { TYPE_FILE = 1, TYPE_DIRECTORY = 2, TYPE_SYMLINK = 3, TYPE_FIFO = 4, TYPE_SOCKET = 5, TYPE_CHARACTER = 6, TYPE_BLOCK = 7 };

/* Followed by the name and, of a symbolic link, its target. */
struct file_entry_body {
	uint32_t length; /* with name and target */
	uint16_t name_length, target_length;
	uint8_t type, zero[3];
	uint32_t mode, uid, gid, link_count, modified_ns;
	uint64_t size, stored_bytes;
	int64_t modified_s;
};

struct file_end_body {
	uint64_t bytes, entries, omitted;
};

/* Ahead of FAILED: what was done before it, and stays. */
struct file_partial_body {
	uint64_t bytes, entries;
};

/* Followed by the path it is about. */
struct file_failed_body {
	uint16_t reason, zero;
	int32_t error_number;
};

/* Followed by the path. */
struct file_omitted_body {
	uint16_t what, zero;
};

/* A record of WATCH, in DATA frames; followed by the name, relative to the watched directory. */
struct file_event_body {
	uint16_t length; /* with the name */
	uint16_t kind;
	uint32_t cookie; /* equal in the two halves of a rename */
};

enum file_event {
	EVENT_WATCHING = 1, /* first of all: nothing that happens from here on is missed */
	EVENT_CREATED = 2,
	EVENT_MODIFIED = 3,
	EVENT_REMOVED = 4,
	EVENT_MOVED_FROM = 5,
	EVENT_MOVED_TO = 6,
	EVENT_ATTRIBUTES = 7,
	EVENT_OVERFLOW = 8, /* events were lost: look again */
	EVENT_UNWATCHED = 9, /* a directory too many, or too deep: what happens in it is not told */
	EVENT_DIRECTORY = 0x8000, /* flag: it is about a directory */
};

_Static_assert(sizeof(struct file_entry_body) == 56, "ENTRY");
_Static_assert(sizeof(struct file_end_body) == 24, "END");
_Static_assert(sizeof(struct file_partial_body) == 16, "PARTIAL");
_Static_assert(sizeof(struct file_failed_body) == 8, "FAILED");
_Static_assert(sizeof(struct file_omitted_body) == 4, "OMITTED");
_Static_assert(sizeof(struct file_event_body) == 8, "event");

#endif
