#include "launch.h"

#include "assembly.h"
#include "child.h"
#include "files.h"
#include "launcher.h"
#include "teardown.h"
#include "tombs.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { REPORT_AETHER_ERROR_BYTES = 5 /* 'E' and an i32 */ };

static void answer_live(const struct ticket *ticket, const struct sandbox *sandbox)
{
	struct body body = {0};
	body_add(&body, "pid", "%d", (int)sandbox->pid);
	body_add(&body, "startTime", "%llu", (unsigned long long)sandbox->start_time);
	answer_ok(ticket, &body);
}

/* Ready, or not ----------------------------------------------------------------------------------------------- */

static void fail_launch(struct sandbox *sandbox)
{
	loop_clear_timer(&sandbox->timer);
	teardown_failed(sandbox);
}

static int succeed_launch(struct sandbox *sandbox)
{
	size_t length;
	char *record = sandbox_read_record(sandbox->id, &length);
	struct launch_spec spec;
	if (!record)
		return fault_errno(&sandbox->fault, "read record");
	int result = spec_parse(&spec, record, length, &sandbox->fault) < 0 ? -1 : cgroup_seal(&launcher.cgroups, spec.id, &spec.limits, &sandbox->fault);
	free(record);
	if (result < 0)
		return -1;
	loop_clear_timer(&sandbox->timer);
	sandbox->phase = SANDBOX_LIVE;
	sandbox->process.ready = sandbox_on_exit;
	for (int i = 0; i < sandbox->launch.count; i++)
		answer_live(&sandbox->launch.list[i], sandbox);
	sandbox->launch.count = 0;
	return 0;
}

/* It ended without a word. */
static void explain_death(struct sandbox *sandbox)
{
	siginfo_t information = {0};
	waitid(P_PIDFD, (id_t)sandbox->process.fd, &information, WEXITED | WNOHANG | WNOWAIT);
	if (information.si_code == CLD_KILLED || information.si_code == CLD_DUMPED)
		fault_set(&sandbox->fault, CODE_DIED, "wait for Aether", 0, "the first process was killed by SIG%s before it was ready",
			  sigabbrev_np(information.si_status));
	else
		fault_set(&sandbox->fault, CODE_DIED, "wait for Aether", 0, "the first process ended with code %d before it was ready", information.si_status);
}

static void read_report(struct sandbox *sandbox, const struct child_report *report, ssize_t length)
{
	int32_t error;
	if (length == (ssize_t)sizeof *report && report->letter == 'C') {
		errno = report->error;
		fault_errno(&sandbox->fault, child_step_name(report->step));
	} else if (length == REPORT_AETHER_ERROR_BYTES && report->letter == 'E') {
		memcpy(&error, (const char *)report + 1, sizeof error);
		errno = error;
		fault_errno(&sandbox->fault, "set Aether up");
	} else
		explain_death(sandbox);
}

/* What came over the channel: ready, or why not. */
static void take_report(struct sandbox *sandbox, const struct child_report *report, ssize_t length)
{
	bool ready = length == 1 && report->letter == 'R';
	if (!ready)
		read_report(sandbox, report, length);
	loop_close(&sandbox->channel);
	if (!ready || succeed_launch(sandbox) < 0)
		fail_launch(sandbox);
}

static void on_channel(struct watch *watch, uint32_t events)
{
	(void)events;
	struct sandbox *sandbox = OWNER_OF(watch, struct sandbox, channel);
	struct child_report report;
	ssize_t length = recv(watch->fd, &report, sizeof report, MSG_DONTWAIT);
	if (length == 0) /* it is dying; how, is known when it is dead */
		loop_close(watch);
	else
		take_report(sandbox, &report, length);
}

/* What it said before it died may still be in the channel. */
static void on_early_death(struct watch *watch, uint32_t events)
{
	(void)events;
	struct sandbox *sandbox = OWNER_OF(watch, struct sandbox, process);
	struct child_report report;
	ssize_t length = sandbox->channel.fd < 0 ? 0 : recv(sandbox->channel.fd, &report, sizeof report, MSG_DONTWAIT);
	take_report(sandbox, &report, length);
}

static void on_timeout(struct timer *timer)
{
	struct sandbox *sandbox = OWNER_OF(timer, struct sandbox, timer);
	fault_set(&sandbox->fault, CODE_TIMEOUT, "wait for Aether", ETIMEDOUT, "sandbox %s was not ready after %d ms", sandbox->id, LAUNCH_TIMEOUT_MS);
	fail_launch(sandbox);
}

/* The request ------------------------------------------------------------------------------------------------- */

static int start(struct sandbox *sandbox, struct assembly *assembly, const struct launch_spec *spec, struct fault *fault)
{
	if (assembly_make(assembly, sandbox, spec, fault) < 0)
		return -1;
	int pidfd = -1;
	pid_t pid = assembly_clone(assembly, spec, &pidfd, fault);
	if (pid < 0)
		return -1;
	if (sandbox_watch(sandbox, pid, pidfd) < 0) {
		fault_errno(fault, "watch process");
		close_fd(&pidfd);
		return -1; /* the channel closes, so the child goes by itself */
	}
	sandbox->process.ready = on_early_death;
	if (loop_watch(&sandbox->channel, assembly->launcher_end, on_channel) < 0)
		return fault_errno(fault, "watch channel");
	assembly->launcher_end = -1;
	return assembly_admit(assembly, sandbox, spec, fault);
}

static int check_layers(const struct launch_spec *spec, struct fault *fault)
{
	for (int i = 0; i < spec->layer_count; i++)
		if (!images_find(spec->layers[i]))
			return fault_set(fault, CODE_MISSING, "find layer", ENOENT, "layer %s is not mounted; ask for MOUNT_IMAGE first", spec->layers[i]);
	return 0;
}

/* The sandbox to start: a new one, or what is left of one that died. */
static struct sandbox *claim(const struct launch_spec *spec, const struct request *request, struct fault *fault)
{
	struct sandbox *sandbox = sandbox_find(spec->id), *owner = sandbox_with_slot(spec->slot);
	if (owner && owner != sandbox) {
		fault_set(fault, CODE_INVALID, "claim slot", EEXIST, "slot %llu belongs to sandbox %s", (unsigned long long)spec->slot, owner->id);
		return NULL;
	}
	if (check_layers(spec, fault) < 0)
		return NULL;
	if (sandbox && cgroup_remove(&launcher.cgroups, spec->id) < 0) {
		fault_set(fault, CODE_BUSY, "claim", EBUSY, "processes of a former sandbox %s are still there; destroy it", spec->id);
		return NULL;
	}
	if (!sandbox && !(sandbox = sandbox_add(spec->id))) {
		fault_set(fault, CODE_FULL, "claim", ENOMEM, "the launcher holds %d sandboxes already", SANDBOXES_MAX);
		return NULL;
	}
	if (sandbox_record(sandbox, request->body, request->length, fault) < 0) {
		if (!sandbox->has_slot)
			sandbox_drop(sandbox);
		return NULL;
	}
	return sandbox;
}

static void launch_new(const struct launch_spec *spec, const struct request *request)
{
	struct fault fault;
	struct sandbox *sandbox = claim(spec, request, &fault);
	if (!sandbox) {
		answer_fault(&request->ticket, &fault);
		return;
	}
	struct assembly assembly = EMPTY_ASSEMBLY;
	sandbox->phase = SANDBOX_LAUNCHING;
	waiters_add(&sandbox->launch, &request->ticket);
	loop_set_timer(&sandbox->timer, LAUNCH_TIMEOUT_MS, on_timeout);
	int result = start(sandbox, &assembly, spec, &sandbox->fault);
	assembly_close(&assembly);
	if (result < 0)
		fail_launch(sandbox);
}

void launch_request(const struct request *request)
{
	struct launch_spec spec;
	struct fault fault;
	if (spec_parse(&spec, request->body, request->length, &fault) < 0) {
		answer_fault(&request->ticket, &fault);
		return;
	}
	struct sandbox *sandbox = sandbox_find(spec.id);
	if (tomb_exists(spec.id)) {
		fault_set(&fault, CODE_TOMBSTONE, "find tombstone", 0, "sandbox %s was destroyed", spec.id);
		answer_fault(&request->ticket, &fault);
	} else if (sandbox && sandbox->phase == SANDBOX_LIVE) {
		if (cgroup_seal(&launcher.cgroups, spec.id, &spec.limits, &fault) < 0) /* a launcher that died may have missed it */
			answer_fault(&request->ticket, &fault);
		else
			answer_live(&request->ticket, sandbox);
	} else if (sandbox && sandbox->phase == SANDBOX_LAUNCHING) {
		if (waiters_add(&sandbox->launch, &request->ticket))
			return;
		fault_set(&fault, CODE_BUSY, "join launch", EBUSY, "%d requests wait for sandbox %s already", WAITERS_MAX, spec.id);
		answer_fault(&request->ticket, &fault);
	} else if (sandbox && sandbox->phase == SANDBOX_ENDING) {
		fault_set(&fault, CODE_BUSY, "find sandbox", EBUSY, "a failed launch of sandbox %s is being cleared away; ask again", spec.id);
		answer_fault(&request->ticket, &fault);
	} else
		launch_new(&spec, request);
}
