/* The sandbox's first process, from clone3 to the exec of Aether: it puts its own world together from inside. */
#ifndef DSEC_LAUNCHER_CHILD_H
#define DSEC_LAUNCHER_CHILD_H

#include "cgroup.h"
#include "limits.h"

#include <stdint.h>

enum child_step {
	STEP_GATE,
	STEP_IDENTITY,
	STEP_CGROUP,
	STEP_PROPAGATION,
	STEP_ROOT,
	STEP_PROC,
	STEP_PROC_MASK,
	STEP_DEV,
	STEP_DEV_PTS,
	STEP_DEV_SHM,
	STEP_DEV_MQUEUE,
	STEP_SYS,
	STEP_SYS_MASK,
	STEP_FACTS,
	STEP_TMP,
	STEP_ETC,
	STEP_PIVOT,
	STEP_HOSTNAME,
	STEP_LOOPBACK,
	STEP_SESSION,
	STEP_DESCRIPTORS,
	STEP_EXEC,
	STEP_COUNT,
};

/* What goes over the channel (a SEQPACKET socket): one byte from Aether, or this from the child. */
struct child_report {
	char letter; /* 'C' */
	uint8_t step;
	uint8_t reserved[2];
	int32_t error;
};

/* Passed over the gate with the go-ahead. */
enum { GO_ROOT, GO_DEV, GO_EMPTY, GO_FDS };

struct child_setup {
	const char *hostname;
	uint64_t life_seconds;
	struct cgroup_limits limits;
	int channel;       /* this process's end */
	int launcher_end;  /* to be closed first: else the gate would never notice the launcher's death */
	int listener, exec_dir, aether;
	const struct cgroup_handles *cgroup;
};

const char *child_step_name(unsigned step);
_Noreturn void child_run(const struct child_setup *setup);

#endif
