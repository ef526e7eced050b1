#include "output.h"

#include "limits.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* One buffer for all streams: there is one thread, and bytes rest in pipes and logs only. */
static uint8_t *scratch;

static uint8_t *get_scratch(void)
{
	if (!scratch) {
		void *mapped = mmap(NULL, SCRATCH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		scratch = mapped == MAP_FAILED ? NULL : mapped;
	}
	return scratch;
}

void output_release_scratch(void)
{
	if (scratch)
		munmap(scratch, SCRATCH_BYTES);
	scratch = NULL;
}

int output_make_log(int directory, const char *exec, const char *suffix)
{
	char name[EXEC_ID_BYTES + 8];
	memcpy(name, exec, EXEC_ID_LENGTH);
	strcpy(name + EXEC_ID_LENGTH, suffix);
	return openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Gives the disk back what no reader needs. Where a file system has no holes the log keeps its length, and nothing else changes. */
static void punch(struct output *output)
{
	uint64_t until = output->discarded / PUNCH_BYTES * PUNCH_BYTES;
	if (output->log_fd < 0 || until <= output->punched)
		return;
	(void)fallocate(output->log_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)output->punched, (off_t)(until - output->punched));
	output->punched = until;
}

static uint64_t room_of(const struct output *output)
{
	return output->limit - (output->stored - output->discarded);
}

static int is_held_back(const struct output *output)
{
	return output->hold && output->drop == DROP_NONE && room_of(output) == 0;
}

/* Makes room for `length` more by letting go of the oldest bytes. */
static void roll(struct output *output, size_t length)
{
	if (output->roll && !output->hold && output->limit > 0 && room_of(output) < length) {
		output->discarded = output->stored + length - output->limit;
		punch(output);
	}
}

/* Appends up to the cap. A failed write ends the log for good: later bytes would stand at wrong offsets. */
static void store(struct output *output, const uint8_t *bytes, size_t length)
{
	if (output->drop != DROP_NONE)
		return;
	roll(output, length);
	uint64_t room = room_of(output);
	size_t wanted = length < room ? length : (size_t)room, done = 0;
	if (wanted < length)
		output->drop = output->was_held ? DROP_RELEASED : DROP_LIMIT;
	while (done < wanted) {
		ssize_t written = write(output->log_fd, bytes + done, wanted - done);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			output->drop = DROP_NO_SPACE;
			break;
		}
		done += (size_t)written;
	}
	output->stored += done;
}

/* Nothing is in the pipe, and nobody is left to write into it. */
static int has_no_writer(const struct output *output)
{
	struct pollfd pipe = {.fd = output->pipe.fd, .events = POLLIN};
	return poll(&pipe, 1, 0) == 1 && pipe.revents == POLLHUP;
}

static enum pump_result pump(struct output *output, size_t most, int directory, const char *exec, const char *suffix, size_t *taken)
{
	uint8_t *buffer = get_scratch();
	*taken = 0;
	if (!buffer)
		return PUMP_EMPTY; /* no memory now; the pipe keeps the bytes */
	if (is_held_back(output))
		return has_no_writer(output) ? PUMP_CLOSED : PUMP_HELD;
	if (output->hold && output->drop == DROP_NONE && most > room_of(output))
		most = (size_t)room_of(output);
	if (output->roll && output->limit > 0 && most > output->limit)
		most = (size_t)output->limit; /* what comes at once is never more than all that is kept */
	ssize_t got = read(output->pipe.fd, buffer, most < SCRATCH_BYTES ? most : SCRATCH_BYTES);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? PUMP_EMPTY : PUMP_CLOSED;
	if (got == 0)
		return PUMP_CLOSED;
	*taken = (size_t)got;
	output->total += (uint64_t)got;
	if (output->log_fd < 0 && output->limit > 0 && output->drop == DROP_NONE) {
		output->log_fd = output_make_log(directory, exec, suffix);
		output->drop = output->log_fd < 0 ? DROP_NO_SPACE : DROP_NONE;
	}
	store(output, buffer, (size_t)got);
	return PUMP_MORE;
}

enum pump_result output_pump(struct output *output, int directory, const char *exec, const char *suffix)
{
	size_t taken;
	enum pump_result result = pump(output, SCRATCH_BYTES, directory, exec, suffix, &taken);
	if (result == PUMP_HELD)
		(void)loop_watch(&output->pipe, 0);
	return result;
}

/* What lies in the pipe. A terminal does not count what it has not passed on yet, but never keeps more than this. */
static size_t count_waiting(const struct output *output)
{
	int waiting = 0;
	if (output->is_terminal)
		return TERMINAL_BYTES_MAX;
	return ioctl(output->pipe.fd, FIONREAD, &waiting) < 0 ? 0 : (size_t)waiting;
}

int output_drain(struct output *output, int directory, const char *exec, const char *suffix)
{
	if (output->pipe.fd < 0)
		return 0;
	/* one byte beyond what is there: it tells an empty pipe from one that has no writer left */
	size_t waiting = count_waiting(output), left = waiting + 1, taken;
	enum pump_result result = PUMP_MORE;
	while (left > 0 && result == PUMP_MORE) {
		result = pump(output, left, directory, exec, suffix, &taken);
		left -= taken;
	}
	if (result == PUMP_CLOSED)
		output_close(output);
	if (result != PUMP_HELD || left == 1)
		return 0;
	output->due = output->is_terminal ? UINT64_MAX : output->total + left - 1;
	return 1;
}

int output_is_due(struct output *output, int directory, const char *exec, const char *suffix)
{
	uint64_t due = output->due;
	if (due == 0 || output->total >= due)
		return 0;
	int is_held = output_drain(output, directory, exec, suffix);
	output->due = is_held ? due : 0; /* what came later is none of it */
	return is_held && output->total < due;
}

void output_set_window(struct output *output, uint64_t discard, int hold)
{
	if (discard > output->stored)
		discard = output->stored;
	if (discard > output->discarded)
		output->discarded = discard;
	output->hold = hold ? 1 : 0;
	output->was_held |= output->hold;
	punch(output);
	if (output->pipe.fd >= 0 && !is_held_back(output))
		(void)loop_watch(&output->pipe, EPOLLIN);
}

void output_close(struct output *output)
{
	loop_close(&output->pipe);
	if (output->log_fd >= 0)
		close(output->log_fd);
	output->log_fd = -1;
}
