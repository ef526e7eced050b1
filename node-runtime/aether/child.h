/* The command's own process between clone3 and exec. */
#ifndef AETHER_CHILD_H
#define AETHER_CHILD_H

#include "request.h"

#include <stdint.h>

struct child_plan {
	const struct start_request *request;
	int stdin_fd, stdout_fd, stderr_fd;
	int report_fd; /* close-on-exec: end of file means that the exec happened */
	const int *gates; /* cgroup.procs files of v1 hierarchies */
	int gate_count;
};

/* What the child writes to `report_fd` when it cannot go on. */
struct child_report {
	uint16_t failure; /* enum start_failure */
	uint16_t zero;
	int32_t error_number;
};

/* Becomes the command, or reports why not and exits. */
_Noreturn void child_run(const struct child_plan *plan);

#endif
