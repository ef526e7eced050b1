#include "teardown.h"

#include "files.h"
#include "frame.h"
#include "job.h"
#include "launcher.h"
#include "spec.h"
#include "storage.h"
#include "tombs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

static void look_again(struct timer *timer);

static void answer_all(struct waiters *waiters, const struct fault *fault)
{
	for (int i = 0; i < waiters->count; i++)
		if (fault)
			answer_fault(&waiters->list[i], fault);
		else
			answer_ok(&waiters->list[i], NULL);
	waiters->count = 0;
}

/* Who waited for a launch learns why there is none. */
static void answer_launchers(struct sandbox *sandbox)
{
	struct fault fault = sandbox->fault;
	if (sandbox->bury)
		fault_set(&fault, CODE_TOMBSTONE, "destroy", 0, "sandbox %s was destroyed while it was being launched", sandbox->id);
	answer_all(&sandbox->launch, &fault);
}

/* Socket and storage, by the record, or by what the request said when there is no record. */
static int remove_files(const char *id, const void *body, size_t length, struct fault *fault)
{
	const char *socket = kv_get(body, length, "socket"), *upper = kv_get(body, length, "upper"), *work = kv_get(body, length, "work"), *disk = kv_get(body, length, "disk");
	if (socket && is_host_path(socket, SOCKET_PATH_BYTES))
		unlink(socket);
	if (upper && is_host_path(upper, PATH_BYTES) && storage_discard(id, upper, "upper", fault) < 0)
		return -1;
	if (disk && is_host_path(disk, PATH_BYTES) && storage_discard(id, disk, "disk", fault) < 0)
		return -1;
	return work && is_host_path(work, PATH_BYTES) ? storage_discard(id, work, "work", fault) : 0;
}

static int remove_recorded_files(const char *id, bool failed, struct fault *fault)
{
	size_t length = 0;
	char *record = sandbox_read_record(id, &length);
	int result = record ? remove_files(id, record, length, fault) : 0;
	struct launch_spec spec;
	struct fault unreadable;
	if (failed && result == 0 && record && spec_parse(&spec, record, length, &unreadable) == 0)
		storage_tidy(spec.upper, spec.exec_dir);
	free(record);
	return result;
}

/* It could not be ended: what is left stays recorded, and another DESTROY tries again. */
static void leave(struct sandbox *sandbox, const struct fault *fault)
{
	sandbox->phase = sandbox->process.fd >= 0 ? SANDBOX_LIVE : SANDBOX_DEAD;
	answer_launchers(sandbox);
	answer_all(&sandbox->destroy, fault);
}

static void finish(struct sandbox *sandbox)
{
	struct fault fault;
	if (remove_recorded_files(sandbox->id, !sandbox->bury, &fault) < 0) {
		leave(sandbox, &fault);
		return;
	}
	sandbox_forget_record(sandbox);
	if (sandbox->bury)
		tomb_settle(sandbox->id);
	answer_launchers(sandbox);
	answer_all(&sandbox->destroy, NULL);
	sandbox_drop(sandbox);
}

/* Removes what is empty; while something is not, looks again after a pause that grows. */
static void progress(struct sandbox *sandbox)
{
	struct fault fault;
	if (sandbox->process.fd < 0 && cgroup_remove(&launcher.cgroups, sandbox->id) == 0) {
		finish(sandbox);
		return;
	}
	if (loop_now_ms() >= sandbox->give_up_at_ms) {
		fault_set(&fault, CODE_TIMEOUT, "destroy", ETIMEDOUT, "processes of sandbox %s did not end within %d ms", sandbox->id, TEARDOWN_TIMEOUT_MS);
		leave(sandbox, &fault);
		return;
	}
	if (sandbox->process.fd < 0) { /* the process tree is dead, but something joined the group from outside, or still leaves it */
		cgroup_kill(&launcher.cgroups, sandbox->id);
		loop_set_timer(&sandbox->timer, sandbox->retry_ms, look_again);
		sandbox->retry_ms = sandbox->retry_ms * 2 < RETRY_LONGEST_MS ? sandbox->retry_ms * 2 : RETRY_LONGEST_MS;
		return;
	}
	loop_set_timer(&sandbox->timer, TEARDOWN_TIMEOUT_MS, look_again);
}

static void look_again(struct timer *timer)
{
	progress(OWNER_OF(timer, struct sandbox, timer));
}

static void on_exit_of_ending(struct watch *watch, uint32_t events)
{
	(void)events;
	struct sandbox *sandbox = OWNER_OF(watch, struct sandbox, process);
	waitid(P_PIDFD, (id_t)watch->fd, NULL, WEXITED | WNOHANG);
	sandbox_unwatch(sandbox);
	loop_clear_timer(&sandbox->timer);
	progress(sandbox);
}

static void begin(struct sandbox *sandbox)
{
	sandbox->phase = SANDBOX_ENDING;
	sandbox->give_up_at_ms = loop_now_ms() + TEARDOWN_TIMEOUT_MS;
	sandbox->retry_ms = RETRY_FIRST_MS;
	loop_clear_timer(&sandbox->timer);
	loop_close(&sandbox->channel);
	if (sandbox->process.fd >= 0) {
		sandbox->process.ready = on_exit_of_ending;
		pidfd_send_signal(sandbox->process.fd, SIGKILL, NULL, 0); /* PID 1: the kernel ends its whole namespace */
	}
	cgroup_kill(&launcher.cgroups, sandbox->id);
	progress(sandbox);
}

void teardown_failed(struct sandbox *sandbox)
{
	begin(sandbox);
}

static void destroy_unrecorded(const char *id, const struct request *request)
{
	struct fault fault;
	/* nothing runs under this id, but an earlier teardown may have died before it had removed the files */
	if (remove_recorded_files(id, false, &fault) < 0 || remove_files(id, request->body, request->length, &fault) < 0) {
		answer_fault(&request->ticket, &fault);
		return;
	}
	tomb_settle(id);
	answer_ok(&request->ticket, NULL);
}

void destroy_request(const struct request *request)
{
	struct fault fault;
	const char *id = kv_get(request->body, request->length, "id");
	if (!id || !is_sandbox_id(id)) {
		fault_set(&fault, CODE_INVALID, "parse DESTROY", EINVAL, "DESTROY: field id is missing or not the id of a sandbox");
		answer_fault(&request->ticket, &fault);
		return;
	}
	if (tomb_make(id, &fault) < 0) {
		answer_fault(&request->ticket, &fault);
		return;
	}
	jobs_cancel(id);
	struct sandbox *sandbox = sandbox_find(id);
	if (!sandbox) {
		destroy_unrecorded(id, request);
		return;
	}
	if (!waiters_add(&sandbox->destroy, &request->ticket)) {
		fault_set(&fault, CODE_BUSY, "join destroy", EBUSY, "%d requests wait for the end of sandbox %s already", WAITERS_MAX, id);
		answer_fault(&request->ticket, &fault);
		return;
	}
	sandbox->bury = true;
	if (sandbox->phase != SANDBOX_ENDING)
		begin(sandbox);
}
