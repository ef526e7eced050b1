/* Timers fire in order and only when due; a handler may end its own watch; files are replaced whole. */
#include "check.h"
#include "files.h"
#include "loop.h"

#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

static char order[16];
static size_t fired;

static void first_due(struct timer *timer)
{
	(void)timer;
	order[fired++] = '1';
}

static void second_due(struct timer *timer)
{
	(void)timer;
	order[fired++] = '2';
}

static void never_due(struct timer *timer)
{
	(void)timer;
	order[fired++] = 'x';
}

static void timers_fire_in_order(void)
{
	struct timer late = {0}, early = {0}, cleared = {0};
	loop_set_timer(&late, 4, second_due);
	loop_set_timer(&cleared, 1, never_due);
	loop_set_timer(&early, 2, first_due);
	loop_clear_timer(&cleared);
	loop_clear_timer(&cleared);
	while (fired < 2)
		CHECK(loop_turn() == 0);
	CHECK(strcmp(order, "12") == 0 && !late.armed && !early.armed);
}

static bool was_read;

static void on_readable(struct watch *watch, uint32_t events)
{
	(void)events;
	was_read = true;
	loop_close(watch);
}

static void a_handler_may_close_its_watch(void)
{
	int pair[2];
	struct watch watch;
	CHECK(pipe(pair) == 0 && write(pair[1], "x", 1) == 1);
	CHECK(loop_watch(&watch, pair[0], on_readable) == 0);
	CHECK(loop_turn() == 0 && was_read && watch.fd == -1);
	close(pair[1]);
}

static void a_file_is_replaced_whole(void)
{
	char directory[] = "/tmp/dsec-files-test-XXXXXX", text[16];
	CHECK(mkdtemp(directory));
	int dir = open(directory, O_RDONLY | O_DIRECTORY);
	CHECK(replace_file(dir, "a", "one", 3) == 0 && replace_file(dir, "a", "three", 5) == 0);
	CHECK(read_text(dir, "a", text, sizeof text) == 5 && strcmp(text, "three") == 0);
	CHECK(!file_exists(dir, ".a"));
	CHECK(write_control(dir, "missing", "x") == -1 && errno == ENOENT);
	CHECK(unlinkat(dir, "a", 0) == 0);
	close(dir);
	CHECK(rmdir(directory) == 0);
}

int main(void)
{
	CHECK(loop_open() == 0);
	RUN(timers_fire_in_order);
	RUN(a_handler_may_close_its_watch);
	RUN(a_file_is_replaced_whole);
	return 0;
}
