/* The parts of a sandbox on the launcher's side: made before the clone, handed to the child, closed after. */
#ifndef DSEC_LAUNCHER_ASSEMBLY_H
#define DSEC_LAUNCHER_ASSEMBLY_H

#include "sandbox.h"
#include "spec.h"
#include "storage.h"

/* Descriptors that live only until the child has them. */
struct assembly {
	struct storage storage;
	struct cgroup_handles cgroup;
	int listener, child_end, launcher_end;
};

extern const struct assembly EMPTY_ASSEMBLY;

int assembly_make(struct assembly *assembly, const struct sandbox *sandbox, const struct launch_spec *spec, struct fault *fault);
/* The child, waiting at its gate. Its process id and *pidfd, or -1. */
pid_t assembly_clone(const struct assembly *assembly, const struct launch_spec *spec, int *pidfd, struct fault *fault);
/* What the waiting child cannot do for itself; then the gate opens. */
int assembly_admit(const struct assembly *assembly, const struct sandbox *sandbox, const struct launch_spec *spec, struct fault *fault);
void assembly_close(struct assembly *assembly);

#endif
