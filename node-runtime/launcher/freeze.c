#include "freeze.h"

#include "launcher.h"
#include "loop.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One request that waits for its sandbox to come to rest. */
struct pending {
	struct timer timer;
	struct ticket ticket;
	char id[ID_BYTES];
	bool frozen;
	int64_t give_up_at_ms;
	int retry_ms;
};

static void answer(const struct pending *pending, int state)
{
	struct fault fault;
	if (state == pending->frozen)
		answer_ok(&pending->ticket, NULL);
	else if (state < 0) {
		fault_errno(&fault, "read freezer state");
		answer_fault(&pending->ticket, &fault);
	} else {
		fault_set(&fault, CODE_TIMEOUT, "freeze", ETIMEDOUT, "sandbox %s did not come to rest within %d ms", pending->id, FREEZE_TIMEOUT_MS);
		answer_fault(&pending->ticket, &fault);
	}
}

static void look(struct timer *timer)
{
	struct pending *pending = OWNER_OF(timer, struct pending, timer);
	int state = cgroup_is_frozen(&launcher.cgroups, pending->id);
	if (state >= 0 && state != pending->frozen && loop_now_ms() < pending->give_up_at_ms) {
		loop_set_timer(timer, pending->retry_ms, look);
		pending->retry_ms = pending->retry_ms * 2 < RETRY_LONGEST_MS ? pending->retry_ms * 2 : RETRY_LONGEST_MS;
		return;
	}
	answer(pending, state);
	free(pending);
}

void freeze_request(const struct request *request, const char *id, bool frozen)
{
	struct fault fault;
	struct pending *pending = NULL;
	if (cgroup_freeze(&launcher.cgroups, id, frozen) < 0) {
		if (errno == ENOENT)
			fault_set(&fault, CODE_MISSING, "find sandbox", ENOENT, "there is no sandbox %s", id);
		else
			fault_errno(&fault, frozen ? "freeze" : "thaw");
	} else if (!(pending = calloc(1, sizeof *pending)))
		fault_errno(&fault, "remember request");
	if (!pending) {
		answer_fault(&request->ticket, &fault);
		return;
	}
	pending->ticket = request->ticket;
	pending->frozen = frozen;
	pending->give_up_at_ms = loop_now_ms() + FREEZE_TIMEOUT_MS;
	pending->retry_ms = RETRY_FIRST_MS;
	snprintf(pending->id, sizeof pending->id, "%s", id);
	look(&pending->timer);
}
