#include "reclaim.h"

#include "frame.h"
#include "job.h"
#include "launcher.h"
#include "pages.h"
#include "sandbox.h"
#include "spec.h"
#include "swap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* Places of the numbers in a worker's outcome. */
enum { MEMORY_BEFORE, MEMORY_AFTER, MEMORY_SWAPPED, MEMORY_COST, MEMORY_DROPPED, MEMORY_ADVISED };

struct advice {
	enum page_kind kind;
	int advice, threads;
	uint64_t left_bytes, advised_bytes;
};

static int advise_process(pid_t pid, void *context)
{
	struct advice *advice = context;
	int64_t done = pages_advise(pid, advice->kind, advice->advice, advice->left_bytes, advice->threads);
	if (done > 0) {
		advice->advised_bytes += (uint64_t)done;
		advice->left_bytes -= (uint64_t)done < advice->left_bytes ? (uint64_t)done : advice->left_bytes;
	}
	return done < 0 || advice->left_bytes == 0;
}

static int threads_for(uint64_t bytes)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	long worth = 1 + (long)(bytes / (ADVICE_PAGES * 4096ull));
	long count = processors < worth ? processors : worth;
	return count < 1 ? 1 : count > ADVICE_THREADS_MAX ? ADVICE_THREADS_MAX : (int)count;
}

static bool has_swap(void)
{
	struct sysinfo info;
	return sysinfo(&info) == 0 && info.freeswap > 0;
}

/* Of `swapped` bytes so many still take memory: the compressed copies. Nothing on a disk. */
static uint64_t cost_of(uint64_t swapped)
{
	struct swap_usage usage;
	if (swap_read_usage(&usage) < 0 || usage.stored_bytes == 0)
		return 0;
	return (uint64_t)((double)swapped * ((double)usage.taken_bytes / (double)usage.stored_bytes));
}

static void take_from(const char *id, struct cgroup_memory *memory)
{
	const struct cgroup_tree *tree = &launcher.cgroups;
	uint64_t before = memory->reclaimable_bytes;
	struct advice advice = {PAGES_IN_MEMORY, MADV_PAGEOUT, threads_for(before), UINT64_MAX, 0};
	cgroup_each_process(tree, id, advise_process, &advice);
	if (cgroup_read_memory(tree, id, memory) < 0)
		return;
	if (memory->reclaimable_bytes > RECLAIM_REST_BYTES && memory->reclaimable_bytes > before / RECLAIM_REST_DIVISOR)
		cgroup_reclaim(tree, id, memory->reclaimable_bytes);
}

static void reclaim(const struct job_order *order, struct job_outcome *outcome)
{
	const struct cgroup_tree *tree = &launcher.cgroups;
	struct cgroup_memory memory = {0};
	if (cgroup_allow_swap(tree, order->id, true, 0) < 0 || cgroup_read_memory(tree, order->id, &memory) < 0) {
		outcome->failed = fault_errno(&outcome->fault, "reclaim") < 0;
		return;
	}
	outcome->numbers[MEMORY_BEFORE] = memory.used_bytes;
	uint64_t swapped_before = memory.swapped_bytes;
	if (has_swap())
		take_from(order->id, &memory);
	else
		cgroup_reclaim(tree, order->id, memory.file_bytes);
	cgroup_read_memory(tree, order->id, &memory);
	outcome->numbers[MEMORY_AFTER] = memory.used_bytes;
	outcome->numbers[MEMORY_SWAPPED] = memory.swapped_bytes;
	outcome->numbers[MEMORY_COST] = cost_of(memory.swapped_bytes);
	uint64_t left = outcome->numbers[MEMORY_AFTER] + (memory.swapped_bytes > swapped_before ? memory.swapped_bytes - swapped_before : 0);
	outcome->numbers[MEMORY_DROPPED] = outcome->numbers[MEMORY_BEFORE] > left ? outcome->numbers[MEMORY_BEFORE] - left : 0;
}

static void answer_reclaim(const struct job_order *order, const struct job_outcome *outcome)
{
	struct body body = {0};
	if (outcome->failed) {
		answer_fault(&order->ticket, &outcome->fault);
		return;
	}
	body_add(&body, "beforeBytes", "%llu", (unsigned long long)outcome->numbers[MEMORY_BEFORE]);
	body_add(&body, "afterBytes", "%llu", (unsigned long long)outcome->numbers[MEMORY_AFTER]);
	body_add(&body, "swappedBytes", "%llu", (unsigned long long)outcome->numbers[MEMORY_SWAPPED]);
	body_add(&body, "costBytes", "%llu", (unsigned long long)outcome->numbers[MEMORY_COST]);
	body_add(&body, "droppedBytes", "%llu", (unsigned long long)outcome->numbers[MEMORY_DROPPED]);
	answer_ok(&order->ticket, &body);
}

static void submit(const struct request *request, struct job_order *order, const char *id)
{
	struct fault fault;
	order->ticket = request->ticket;
	snprintf(order->id, sizeof order->id, "%s", id);
	if (job_submit(order, &fault) < 0)
		answer_fault(&request->ticket, &fault);
}

/* False, and an answer: there is no such sandbox. */
static bool read_memory(const struct request *request, const char *id, struct cgroup_memory *memory)
{
	struct fault fault;
	if (cgroup_read_memory(&launcher.cgroups, id, memory) == 0)
		return true;
	fault_set(&fault, CODE_MISSING, "find sandbox", ENOENT, "there is no sandbox %s", id);
	answer_fault(&request->ticket, &fault);
	return false;
}

void reclaim_request(const struct request *request, const char *id)
{
	struct cgroup_memory memory;
	struct job_order order = {.work = reclaim, .answer = answer_reclaim, .timeout_seconds = RECLAIM_TIMEOUT_SECONDS};
	if (!read_memory(request, id, &memory))
		return;
	if (cgroup_is_frozen(&launcher.cgroups, id) != 1) {
		struct fault fault;
		fault_set(&fault, CODE_INVALID, "reclaim", EINVAL, "sandbox %s is not frozen: its memory stays", id);
		answer_fault(&request->ticket, &fault);
		return;
	}
	/* nothing to be had: a shell that sleeps */
	if (memory.reclaimable_bytes + (has_swap() ? 0 : memory.file_bytes) < RECLAIM_BYTES_MIN) {
		struct job_outcome outcome = {.numbers = {memory.used_bytes, memory.used_bytes, memory.swapped_bytes, cost_of(memory.swapped_bytes)}};
		order.ticket = request->ticket;
		answer_reclaim(&order, &outcome);
		return;
	}
	submit(request, &order, id);
}

static void prefetch(const struct job_order *order, struct job_outcome *outcome)
{
	struct advice advice = {PAGES_IN_SWAP, MADV_WILLNEED, threads_for(order->argument), order->argument, 0};
	setpriority(PRIO_PROCESS, 0, PREFETCH_NICE); /* what the sandbox does now comes first: it may not touch these pages at all */
	cgroup_each_process(&launcher.cgroups, order->id, advise_process, &advice);
	outcome->numbers[MEMORY_ADVISED] = advice.advised_bytes;
}

static void answer_prefetch(const struct job_order *order, const struct job_outcome *outcome)
{
	struct body body = {0};
	if (outcome->failed) {
		answer_fault(&order->ticket, &outcome->fault);
		return;
	}
	body_add(&body, "advisedBytes", "%llu", (unsigned long long)outcome->numbers[MEMORY_ADVISED]);
	answer_ok(&order->ticket, &body);
}

void prefetch_request(const struct request *request, const char *id)
{
	struct cgroup_memory memory;
	struct fault fault;
	uint64_t most_mib;
	struct job_order order = {.work = prefetch, .answer = answer_prefetch, .timeout_seconds = PREFETCH_TIMEOUT_SECONDS};
	if (kv_get_u64(request->body, request->length, "mostMiB", 0, UINT32_MAX, &most_mib) < 0) {
		fault_set(&fault, CODE_INVALID, "parse request", EINVAL, "field mostMiB is missing or malformed");
		answer_fault(&request->ticket, &fault);
		return;
	}
	if (!read_memory(request, id, &memory))
		return;
	order.argument = most_mib << 20 < memory.swapped_bytes ? most_mib << 20 : memory.swapped_bytes;
	if (order.argument == 0) {
		struct job_outcome nothing = {0};
		order.ticket = request->ticket;
		answer_prefetch(&order, &nothing);
		return;
	}
	submit(request, &order, id);
}

void reclaim_end(const char *id)
{
	size_t length = 0;
	struct launch_spec spec;
	struct fault unreadable;
	jobs_cancel(id);
	char *record = sandbox_read_record(id, &length);
	uint64_t swap_mib = record && spec_parse(&spec, record, length, &unreadable) == 0 ? spec.limits.swap_mib : 0;
	cgroup_allow_swap(&launcher.cgroups, id, false, swap_mib);
	free(record);
}
