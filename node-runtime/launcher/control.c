#include "control.h"

#include "files.h"
#include "frame.h"
#include "freeze.h"
#include "images.h"
#include "launch.h"
#include "launcher.h"
#include "reclaim.h"
#include "sandbox.h"
#include "spec.h"
#include "swap.h"
#include "teardown.h"
#include "tombs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void control_hello(const struct request *request)
{
	struct body body = {0};
	body_add(&body, "pid", "%d", (int)getpid());
	body_add(&body, "cgroup", "%s", cgroup_layout_name(launcher.cgroups.layout));
	body_add(&body, "erofs", "%s", images_method());
	body_add(&body, "version", "%s", LAUNCHER_VERSION);
	answer_ok(&request->ticket, &body);
}

static int invalid(struct fault *fault, const char *field)
{
	return fault_set(fault, CODE_INVALID, "parse request", EINVAL, "field %s is missing or malformed", field);
}

static void settle(const struct request *request, int result, const struct fault *fault)
{
	if (result < 0)
		answer_fault(&request->ticket, fault);
	else
		answer_ok(&request->ticket, NULL);
}

static const char *digest_of(const struct request *request)
{
	const char *digest = kv_get(request->body, request->length, "digest");
	return digest && is_digest(digest) ? digest : NULL;
}

/* How many; -1 when a path is missing or none. */
static int image_files_of(const struct request *request, char *files[1 + IMAGE_DEVICES_MAX])
{
	const char *at = request->body, *end = at + request->length, *key, *value;
	size_t key_length;
	int count = 1;
	files[0] = (char *)kv_get(request->body, request->length, "path");
	if (!files[0] || !is_host_path(files[0], PATH_BYTES))
		return -1;
	while ((at = kv_next(at, end, &key, &key_length, &value))) {
		if (key_length != strlen("device") || memcmp(key, "device", key_length) != 0)
			continue;
		if (count == 1 + IMAGE_DEVICES_MAX || !is_host_path(value, PATH_BYTES))
			return -1;
		files[count++] = (char *)value;
	}
	return count;
}

static void mount_image(const struct request *request)
{
	struct fault fault;
	const char *digest = digest_of(request);
	char *files[1 + IMAGE_DEVICES_MAX];
	int count = digest ? image_files_of(request, files) : -1;
	if (count < 0)
		settle(request, invalid(&fault, digest ? "path or device" : "digest"), &fault);
	else
		settle(request, images_mount(digest, files, count, &fault), &fault);
}

static void unmount_image(const struct request *request)
{
	struct fault fault;
	const char *digest = digest_of(request);
	settle(request, digest ? images_unmount(digest, &fault) : invalid(&fault, "digest"), &fault);
}

static void list_images(const struct request *request)
{
	struct body body = {0};
	for (const struct image *image = images_first(); image; image = image->next)
		if (image->mounted)
			body_add(&body, "digest", "%s", image->digest);
	answer_ok(&request->ticket, &body);
}

/* The sandbox that the request names, or NULL and an answer. */
static const char *sandbox_id_of(const struct request *request)
{
	struct fault fault;
	const char *id = kv_get(request->body, request->length, "id");
	if (id && is_sandbox_id(id))
		return id;
	settle(request, invalid(&fault, "id"), &fault);
	return NULL;
}

static void freeze(const struct request *request)
{
	const char *id = sandbox_id_of(request);
	if (id)
		freeze_request(request, id, true);
}

static void thaw(const struct request *request)
{
	const char *id = sandbox_id_of(request);
	if (!id)
		return;
	reclaim_end(id);
	freeze_request(request, id, false);
}

static void reclaim(const struct request *request)
{
	const char *id = sandbox_id_of(request);
	if (id)
		reclaim_request(request, id);
}

static void prefetch(const struct request *request)
{
	const char *id = sandbox_id_of(request);
	if (id)
		prefetch_request(request, id);
}

static void stats(const struct request *request)
{
	struct cgroup_stats found;
	struct fault fault;
	const char *id = sandbox_id_of(request);
	if (!id)
		return;
	if (cgroup_read_stats(&launcher.cgroups, id, &found) < 0) {
		fault_set(&fault, CODE_MISSING, "find sandbox", ENOENT, "there is no sandbox %s", id);
		answer_fault(&request->ticket, &fault);
		return;
	}
	struct body body = {0};
	body_add(&body, "memoryBytes", "%llu", (unsigned long long)found.memory_bytes);
	body_add(&body, "cpuUsec", "%llu", (unsigned long long)found.cpu_usec);
	body_add(&body, "pids", "%llu", (unsigned long long)found.pids);
	body_add(&body, "oomKills", "%llu", (unsigned long long)found.oom_kills);
	answer_ok(&request->ticket, &body);
}

/* A launch in flight is neither present nor absent: it answers for itself. */
static int list_one(struct sandbox *sandbox, void *context)
{
	if (sandbox->phase != SANDBOX_LAUNCHING)
		body_add(context, "sandbox", "%s %d", sandbox->id, (int)cgroup_first_process(&launcher.cgroups, sandbox->id));
	return 0;
}

static int list_unknown(const char *id, void *context)
{
	if (!sandbox_find(id))
		body_add(context, "sandbox", "%s %d", id, (int)cgroup_first_process(&launcher.cgroups, id));
	return 0;
}

static void list(const struct request *request)
{
	struct body body = {0};
	sandbox_each(list_one, &body);
	cgroup_each(&launcher.cgroups, list_unknown, &body);
	answer_ok(&request->ticket, &body);
}

static void forget(const struct request *request)
{
	struct fault fault;
	const char *id = sandbox_id_of(request);
	if (!id)
		return;
	settle(request, tomb_remove(id, &fault), &fault);
}

static void quit(const struct request *request)
{
	answer_ok(&request->ticket, NULL);
	launcher.quitting = true;
}

bool control_handle(uint16_t type, const struct request *request)
{
	static void (*const HANDLERS[])(const struct request *) = {
		[REQUEST_MOUNT_IMAGE] = mount_image, [REQUEST_UMOUNT_IMAGE] = unmount_image, [REQUEST_LIST_IMAGES] = list_images,
		[REQUEST_LAUNCH] = launch_request, [REQUEST_DESTROY] = destroy_request, [REQUEST_FREEZE] = freeze, [REQUEST_THAW] = thaw,
		[REQUEST_STATS] = stats, [REQUEST_LIST] = list, [REQUEST_FORGET] = forget, [REQUEST_QUIT] = quit,
		[REQUEST_RECLAIM] = reclaim, [REQUEST_PREFETCH] = prefetch, [REQUEST_SWAP_ON] = swap_on_request, [REQUEST_SWAP_OFF] = swap_off_request,
	};
	if (type >= sizeof HANDLERS / sizeof *HANDLERS || !HANDLERS[type])
		return false;
	HANDLERS[type](request);
	return true;
}
