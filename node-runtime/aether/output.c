#include "output.h"

#include "limits.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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

/* Appends up to the cap. A failed write ends the log for good: later bytes would stand at wrong offsets. */
static void store(struct output *output, const uint8_t *bytes, size_t length)
{
	uint64_t room = output->limit - output->stored;
	size_t wanted = length < room ? length : (size_t)room, done = 0;
	if (output->full)
		return;
	while (done < wanted) {
		ssize_t written = write(output->log_fd, bytes + done, wanted - done);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			output->full = 1;
			break;
		}
		done += (size_t)written;
	}
	output->stored += done;
}

static enum pump_result pump(struct output *output, size_t most, int directory, const char *exec, const char *suffix, size_t *taken)
{
	uint8_t *buffer = get_scratch();
	*taken = 0;
	if (!buffer)
		return PUMP_EMPTY; /* no memory now; the pipe keeps the bytes */
	ssize_t got = read(output->pipe.fd, buffer, most < SCRATCH_BYTES ? most : SCRATCH_BYTES);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? PUMP_EMPTY : PUMP_CLOSED;
	if (got == 0)
		return PUMP_CLOSED;
	*taken = (size_t)got;
	output->total += (uint64_t)got;
	if (output->log_fd < 0 && output->limit > 0 && !output->full) {
		output->log_fd = output_make_log(directory, exec, suffix);
		output->full = output->log_fd < 0;
	}
	store(output, buffer, (size_t)got);
	return PUMP_MORE;
}

enum pump_result output_pump(struct output *output, int directory, const char *exec, const char *suffix)
{
	size_t taken;
	return pump(output, SCRATCH_BYTES, directory, exec, suffix, &taken);
}

void output_drain(struct output *output, int directory, const char *exec, const char *suffix)
{
	int waiting = 0;
	if (output->pipe.fd < 0 || ioctl(output->pipe.fd, FIONREAD, &waiting) < 0)
		return;
	/* one byte beyond what is there: it tells an empty pipe from one that has no writer left */
	size_t left = (size_t)waiting + 1, taken;
	enum pump_result result = PUMP_MORE;
	while (left > 0 && result == PUMP_MORE) {
		result = pump(output, left, directory, exec, suffix, &taken);
		left -= taken;
	}
	if (result == PUMP_CLOSED)
		output_close(output);
}

void output_close(struct output *output)
{
	loop_close(&output->pipe);
	if (output->log_fd >= 0)
		close(output->log_fd);
	output->log_fd = -1;
}
