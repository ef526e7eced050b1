/* Output logs and standard input over real pipes and files. */
#include "check.h"
#include "input.h"
#include "loop.h"
#include "output.h"
#include "record.h"
#include "wire.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXEC "ex-0123456789abcdef01234567"

static char directory[] = "/tmp/dsec-streams-XXXXXX";
static int directory_fd, ends[2];

static void on_ready(struct source *source, uint32_t events)
{
	(void)source;
	(void)events;
}

static struct output open_output(uint64_t limit)
{
	CHECK(pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
	return (struct output){.pipe = {.fd = ends[0], .ready = on_ready}, .log_fd = -1, .limit = limit};
}

static size_t log_size(const char *suffix)
{
	char name[64];
	struct stat status;
	snprintf(name, sizeof name, EXEC "%s", suffix);
	return fstatat(directory_fd, name, &status, 0) == 0 ? (size_t)status.st_size : (size_t)-1;
}

static void forget_log(const char *suffix)
{
	char name[64];
	snprintf(name, sizeof name, EXEC "%s", suffix);
	unlinkat(directory_fd, name, 0);
}

static void log_is_cut_at_the_cap(void)
{
	struct output output = open_output(10);
	CHECK(log_size(".err") == (size_t)-1);
	CHECK(output_pump(&output, directory_fd, EXEC, ".err") == PUMP_EMPTY);
	CHECK(write(ends[1], "123456", 6) == 6 && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE);
	CHECK(write(ends[1], "789012", 6) == 6 && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE);
	CHECK(write(ends[1], "345678", 6) == 6 && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE);
	CHECK(output.total == 18 && output.stored == 10 && log_size(".err") == 10);
	close(ends[1]);
	CHECK(output_pump(&output, directory_fd, EXEC, ".err") == PUMP_CLOSED);
	output_close(&output);
	CHECK(output.pipe.fd < 0 && output.log_fd < 0);
	forget_log(".err");
}

static void nothing_is_kept_at_a_cap_of_zero(void)
{
	struct output output = open_output(0);
	CHECK(write(ends[1], "abc", 3) == 3 && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE);
	CHECK(output.total == 3 && output.stored == 0 && log_size(".err") == (size_t)-1);
	close(ends[1]);
	output_close(&output);
}

/* A file size limit stands for a full disk: the write fails in the middle. */
static void full_disk_is_truncation(void)
{
	struct rlimit before, small;
	CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
	small = (struct rlimit){.rlim_cur = 4, .rlim_max = before.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	struct output output = open_output(100);
	CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
	CHECK(write(ends[1], "12", 2) == 2 && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE);
	CHECK(write(ends[1], "3456", 4) == 4 && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE);
	CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
	CHECK(output.total == 6 && output.stored == 4 && output.drop == DROP_NO_SPACE);
	CHECK(write(ends[1], "78", 2) == 2 && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE);
	CHECK(output.total == 8 && output.stored == 4 && log_size(".err") == 4); /* space again, but no hole */
	close(ends[1]);
	output_close(&output);
	forget_log(".err");
}

static void drain_takes_what_is_there(void)
{
	struct output output = open_output(1 << 20);
	char block[4096] = {0};
	for (int i = 0; i < 10; i++)
		CHECK(write(ends[1], block, sizeof block) == (ssize_t)sizeof block);
	output_drain(&output, directory_fd, EXEC, ".err");
	CHECK(output.total == 10 * sizeof block && output.pipe.fd >= 0); /* a writer is left */
	CHECK(write(ends[1], "x", 1) == 1);
	close(ends[1]);
	output_drain(&output, directory_fd, EXEC, ".err");
	CHECK(output.total == 10 * sizeof block + 1 && output.pipe.fd < 0);
	output_release_scratch();
	forget_log(".err");
}

static int is_watched(const struct output *output)
{
	return output->pipe.events != 0;
}

static void a_held_log_waits_for_its_reader(void)
{
	struct output output = open_output(4);
	output.hold = output.was_held = 1;
	CHECK(loop_watch(&output.pipe, EPOLLIN) == 0);
	CHECK(write(ends[1], "123456789", 9) == 9);
	CHECK(output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE && output.total == 4 && output.stored == 4);
	CHECK(output_pump(&output, directory_fd, EXEC, ".err") == PUMP_HELD && !is_watched(&output));
	output_set_window(&output, 3, 1);
	CHECK(is_watched(&output) && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE && output.stored == 7 && output.discarded == 3);
	output_set_window(&output, 1, 1); /* a late repetition takes nothing back */
	CHECK(output.discarded == 3 && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_HELD);
	output_set_window(&output, 99, 1); /* nobody has read what is not there */
	CHECK(output.discarded == 7);
	close(ends[1]);
	CHECK(output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE && output.total == 9);
	CHECK(output_pump(&output, directory_fd, EXEC, ".err") == PUMP_CLOSED && output.drop == DROP_NONE && log_size(".err") == 9);
	output_close(&output);
	forget_log(".err");
}

static void a_log_that_is_let_go_is_cut(void)
{
	struct output output = open_output(4);
	output.hold = output.was_held = 1;
	CHECK(write(ends[1], "123456", 6) == 6 && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE);
	CHECK(output_drain(&output, directory_fd, EXEC, ".err") == 1 && output_is_due(&output, directory_fd, EXEC, ".err"));
	output_set_window(&output, 0, 0);
	CHECK(!output_is_due(&output, directory_fd, EXEC, ".err"));
	CHECK(output.total == 6 && output.stored == 4 && output.drop == DROP_RELEASED);
	output_set_window(&output, 4, 1); /* too late: there would be a hole */
	CHECK(write(ends[1], "7", 1) == 1 && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE && output.stored == 4);
	close(ends[1]);
	output_close(&output);
	forget_log(".err");
}

static void a_held_pipe_without_a_writer_is_over(void)
{
	struct output output = open_output(2);
	output.hold = output.was_held = 1;
	CHECK(write(ends[1], "12", 2) == 2 && output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE);
	CHECK(output_pump(&output, directory_fd, EXEC, ".err") == PUMP_HELD);
	close(ends[1]);
	CHECK(output_pump(&output, directory_fd, EXEC, ".err") == PUMP_CLOSED);
	output_close(&output);
	forget_log(".err");
}

static void a_rolling_log_keeps_the_newest(void)
{
	struct output output = open_output(4);
	output.roll = 1;
	CHECK(write(ends[1], "123456789", 9) == 9);
	while (output_pump(&output, directory_fd, EXEC, ".err") == PUMP_MORE)
		CHECK(output.stored - output.discarded <= 4);
	CHECK(output.total == 9 && output.stored == 9 && output.discarded == 5 && output.drop == DROP_NONE && log_size(".err") == 9);
	close(ends[1]);
	output_close(&output);
	forget_log(".err");
}

static void logs_are_made_once(void)
{
	int fd = output_make_log(directory_fd, EXEC, ".out");
	CHECK(fd >= 0 && output_make_log(directory_fd, EXEC, ".out") < 0 && errno == EEXIST);
	close(fd);
	forget_log(".out");
}

static struct input open_input(void)
{
	CHECK(pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
	return (struct input){.pipe = {.fd = ends[1], .ready = on_ready}};
}

static int feed(struct input *input, uint64_t offset, const char *text, int close)
{
	int problem = input_accept(input, offset, (const uint8_t *)text, strlen(text), close);
	if (problem == 0)
		input_push(input);
	return problem;
}

static void input_has_offsets(void)
{
	char got[16] = {0};
	struct input input = open_input();
	CHECK(feed(&input, 0, "abc", 0) == 0 && feed(&input, 0, "abc", 0) == 0 && feed(&input, 1, "bcd", 0) == 0 && input.received == 4);
	CHECK(feed(&input, 5, "x", 0) == ERROR_STDIN_GAP);
	CHECK(feed(&input, 0, "ab", 1) == 0 && input.pipe.fd >= 0); /* an old message, repeated late, does not end it */
	CHECK(feed(&input, 4, "", 0) == 0 && feed(&input, 4, "e", 1) == 0 && input.pipe.fd < 0);
	CHECK(feed(&input, 4, "e", 1) == 0 && feed(&input, 5, "f", 0) == ERROR_STDIN_CLOSED);
	CHECK(read(ends[0], got, sizeof got) == 5 && strcmp(got, "abcde") == 0 && read(ends[0], got, 1) == 0);
	close(ends[0]);
}

static void input_waits_for_its_reader(void)
{
	struct input input = open_input();
	size_t length = 100 * 1000;
	uint8_t *bytes = calloc(1, length), *sink = malloc(length);
	CHECK(bytes && sink && input_accept(&input, 0, bytes, length, 1) == 0);
	input_push(&input);
	CHECK(input.pending && input.received == length);
	CHECK(input_accept(&input, length - 1, bytes, 2, 0) == ERROR_STDIN_CLOSED);
	CHECK(input_accept(&input, 0, bytes, length, 1) == 0); /* the same again adds nothing */
	size_t taken = 0;
	for (ssize_t got; (got = read(ends[0], sink, length)) > 0; taken += (size_t)got)
		input_push(&input);
	CHECK(taken == length && !input.pending && input.pipe.fd < 0);
	close(ends[0]);
	free(bytes);
	free(sink);
}

static void a_reader_that_left_swallows(void)
{
	struct input input = open_input();
	signal(SIGPIPE, SIG_IGN);
	close(ends[0]);
	CHECK(feed(&input, 0, "abc", 0) == 0 && input.pipe.fd < 0 && input.received == 3);
	CHECK(feed(&input, 3, "def", 1) == 0 && input.received == 6 && !input.pending);
}

static void records(void)
{
	struct exit_body body = {.wait_status = 7, .ended_at_ms = 5}, back;
	memcpy(body.progress.exec, EXEC, EXEC_ID_LENGTH);
	CHECK(record_read(directory_fd, EXEC, &back) < 0);
	CHECK(record_write(directory_fd, &body) == 0 && record_read(directory_fd, EXEC, &back) == 0);
	CHECK(memcmp(&body, &back, sizeof body) == 0);
	body.pipes_open = 1;
	CHECK(record_write(directory_fd, &body) == 0 && record_read(directory_fd, EXEC, &back) == 0 && back.pipes_open == 1);
	CHECK(truncate("/proc/self/cwd/" EXEC ".exit", 80) == 0 && record_read(directory_fd, EXEC, &back) < 0);
	forget_log(".exit");
	CHECK(log_size(".new") == (size_t)-1);
}

int main(void)
{
	CHECK(mkdtemp(directory) && chdir(directory) == 0);
	directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(directory_fd >= 0 && loop_open() == 0);
	RUN(log_is_cut_at_the_cap);
	RUN(nothing_is_kept_at_a_cap_of_zero);
	RUN(full_disk_is_truncation);
	RUN(drain_takes_what_is_there);
	RUN(a_held_log_waits_for_its_reader);
	RUN(a_log_that_is_let_go_is_cut);
	RUN(a_held_pipe_without_a_writer_is_over);
	RUN(a_rolling_log_keeps_the_newest);
	RUN(logs_are_made_once);
	RUN(input_has_offsets);
	RUN(input_waits_for_its_reader);
	RUN(a_reader_that_left_swallows);
	RUN(records);
	CHECK(rmdir(directory) == 0);
	return 0;
}
