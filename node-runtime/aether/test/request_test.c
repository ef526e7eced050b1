/* Bodies of requests: what is taken, what is refused, and that no mutation of a good body reads outside of it. */
#include "check.h"
#include "number.h"
#include "request.h"

#define EXEC "ex-0123456789abcdef01234567"

static const char good_start[] = "exec=" EXEC "\0stdin=bytes\0timeoutMs=250\0limitStdout=10\0limitStderr=20\0arg=sh\0arg=\0env=A=B\0\0input";
enum { GOOD_START_LENGTH = sizeof good_start - 1 };

static int parse_start(const char *body, size_t length, struct start_request *out)
{
	return request_parse_start((const uint8_t *)body, length, out);
}

static void start_is_taken(void)
{
	struct start_request request;
	CHECK(parse_start(good_start, GOOD_START_LENGTH, &request) == 0);
	CHECK(strcmp(request.exec, EXEC) == 0);
	CHECK(request.stdin_mode == STDIN_BYTES && request.stdin_length == 5 && memcmp(request.stdin_bytes, "input", 5) == 0);
	CHECK(request.timeout_ms == 250 && request.limit_out == 10 && request.limit_err == 20);
	CHECK(request.pairs_length == GOOD_START_LENGTH - 6);
}

static void start_is_refused(void)
{
	static const struct {
		const char *body;
		size_t length;
	} bad[] = {
#define BODY(text) {text, sizeof text - 1}
		BODY(""),
		BODY("\0"),
		BODY("exec=" EXEC "\0stdin=none\0timeoutMs=0\0limitStdout=1\0limitStderr=1\0arg=sh\0"),           /* no end of pairs */
		BODY("exec=" EXEC "\0stdin=none\0timeoutMs=0\0limitStdout=1\0limitStderr=1\0arg=sh"),             /* no NUL at all */
		BODY("exec=" EXEC "\0stdin=none\0timeoutMs=0\0limitStdout=1\0limitStderr=1\0\0"),                 /* no argument */
		BODY("exec=" EXEC "\0stdin=none\0timeoutMs=0\0limitStdout=1\0limitStderr=1\0arg=sh\0\0input"),    /* input, but none asked for */
		BODY("exec=" EXEC "\0stdin=tty\0timeoutMs=0\0limitStdout=1\0limitStderr=1\0arg=sh\0\0"),          /* no such mode */
		BODY("exec=" EXEC "\0stdin=none\0timeoutMs=-1\0limitStdout=1\0limitStderr=1\0arg=sh\0\0"),        /* not a number */
		BODY("exec=" EXEC "\0stdin=none\0timeoutMs=99999999999\0limitStdout=1\0limitStderr=1\0arg=s\0\0"), /* more than a week */
		BODY("exec=" EXEC "\0stdin=none\0limitStdout=1\0limitStderr=1\0arg=sh\0\0"),                      /* no time-out */
		BODY("exec=../../../etc/passwd\0stdin=none\0timeoutMs=0\0limitStdout=1\0limitStderr=1\0arg=sh\0\0"),
		BODY("exec=" EXEC "\0stdin=none\0timeoutMs=0\0limitStdout=1\0limitStderr=1\0nonsense\0arg=sh\0\0"),
#undef BODY
	};
	struct start_request request;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK(parse_start(bad[i].body, bad[i].length, &request) < 0);
}

static void exec_ids(void)
{
	CHECK(exec_id_valid(EXEC));
	CHECK(!exec_id_valid(""));
	CHECK(!exec_id_valid("ex-"));
	CHECK(!exec_id_valid(EXEC "0"));
	CHECK(!exec_id_valid("ex-0123456789abcdef0123456"));
	CHECK(!exec_id_valid("ex-0123456789ABCDEF01234567"));
	CHECK(!exec_id_valid("ex-0123456789abcdef0123456/"));
	CHECK(!exec_id_valid("xx-0123456789abcdef01234567"));
}

static void stdin_is_taken(void)
{
	static const char body[] = "exec=" EXEC "\0offset=7\0close=1\0\0a\0b";
	struct stdin_request request;
	CHECK(request_parse_stdin((const uint8_t *)body, sizeof body - 1, &request) == 0);
	CHECK(request.offset == 7 && request.close == 1 && request.length == 3 && memcmp(request.bytes, "a\0b", 3) == 0);
	static const char bad[] = "exec=" EXEC "\0offset=7\0close=2\0\0";
	CHECK(request_parse_stdin((const uint8_t *)bad, sizeof bad - 1, &request) < 0);
}

static void signals_are_checked(void)
{
	static const char kill_tree[] = "exec=" EXEC "\0signal=9\0tree=1", term_tree[] = "exec=" EXEC "\0signal=15\0tree=1",
			  zero[] = "exec=" EXEC "\0signal=0\0tree=0", term[] = "exec=" EXEC "\0signal=15\0tree=0";
	struct signal_request request;
	CHECK(request_parse_signal((const uint8_t *)kill_tree, sizeof kill_tree, &request) == 0 && request.tree && request.signal_number == 9);
	CHECK(request_parse_signal((const uint8_t *)term, sizeof term, &request) == 0 && !request.tree);
	CHECK(request_parse_signal((const uint8_t *)term_tree, sizeof term_tree, &request) < 0);
	CHECK(request_parse_signal((const uint8_t *)zero, sizeof zero, &request) < 0);
}

static void terminals_and_logs_are_asked_for(void)
{
#define START "exec=" EXEC "\0stdin=none\0timeoutMs=0\0limitStdout=1\0limitStderr=1\0"
	static const char whole[] = START "hold=1\0roll=0\0rows=24\0columns=80\0arg=sh\0\0", plain[] = START "arg=sh\0\0", half[] = START "rows=24\0arg=sh\0\0",
			  zero[] = START "rows=0\0columns=80\0arg=sh\0\0";
#undef START
	struct start_request request;
	CHECK(parse_start(whole, sizeof whole - 1, &request) == 0 && request.hold && !request.roll && request.rows == 24 && request.columns == 80);
	CHECK(parse_start(plain, sizeof plain - 1, &request) == 0 && !request.hold && request.rows == 0);
	CHECK(parse_start(half, sizeof half - 1, &request) < 0 && parse_start(zero, sizeof zero - 1, &request) < 0);
}

static void trees_since_the_input(void)
{
	static const char since[] = "exec=" EXEC "\0signal=9\0tree=1\0sinceInput=1", leader[] = "exec=" EXEC "\0signal=9\0tree=0\0sinceInput=1";
	struct signal_request request;
	CHECK(request_parse_signal((const uint8_t *)since, sizeof since, &request) == 0 && request.since_input);
	CHECK(request_parse_signal((const uint8_t *)leader, sizeof leader, &request) < 0);
}

static void windows_lives_and_ports(void)
{
	static const char window[] = "exec=" EXEC "\0err=1\0discard=77\0hold=0", size[] = "exec=" EXEC "\0rows=1\0columns=65535", huge[] = "exec=" EXEC "\0rows=1\0columns=65536",
			  life[] = "seconds=60", ages[] = "seconds=99999999999", port[] = "port=8080", zero[] = "port=0", local[] = "unix=/run/x", relative[] = "unix=x";
	struct window_request asked;
	struct resize_request resize;
	struct dial_request dial;
	uint64_t seconds;
	char far[128] = "unix=/";
	memset(far + 6, 'x', 110);
	CHECK(request_parse_window((const uint8_t *)window, sizeof window, &asked) == 0 && asked.is_err && !asked.hold && asked.discard == 77);
	CHECK(request_parse_resize((const uint8_t *)size, sizeof size, &resize) == 0 && resize.rows == 1 && resize.columns == 65535);
	CHECK(request_parse_resize((const uint8_t *)huge, sizeof huge, &resize) < 0);
	CHECK(request_parse_life((const uint8_t *)life, sizeof life, &seconds) == 0 && seconds == 60);
	CHECK(request_parse_life((const uint8_t *)ages, sizeof ages, &seconds) < 0);
	char stands[] = "stopped=1", odd[] = "stopped=2";
	CHECK(request_parse_clock((const uint8_t *)stands, sizeof stands, &seconds) == 0 && seconds == 1);
	CHECK(request_parse_clock((const uint8_t *)odd, sizeof odd, &seconds) < 0);
	CHECK(request_parse_dial((const uint8_t *)port, sizeof port, &dial) == 0 && dial.port == 8080 && !dial.path);
	CHECK(request_parse_dial((const uint8_t *)local, sizeof local, &dial) == 0 && strcmp(dial.path, "/run/x") == 0);
	CHECK(request_parse_dial((const uint8_t *)zero, sizeof zero, &dial) < 0 && request_parse_dial((const uint8_t *)relative, sizeof relative, &dial) < 0);
	CHECK(request_parse_dial((const uint8_t *)far, strlen(far) + 1, &dial) < 0);
}

/* Bodies on the heap, so that the address sanitizer sees one byte too far. */
static void mutations_stay_inside(void)
{
	uint32_t random = 12345;
	for (int round = 0; round < 20000; round++) {
		size_t length = random % (GOOD_START_LENGTH + 1);
		uint8_t *body = malloc(length ? length : 1);
		CHECK(body);
		memcpy(body, good_start, length);
		for (int change = 0; change < 3 && length > 0; change++) {
			random = random * 1664525u + 1013904223u;
			body[(random >> 8) % length] = (uint8_t)(random >> 24);
		}
		struct start_request start;
		struct stdin_request input;
		struct signal_request signal;
		struct window_request window;
		struct resize_request resize;
		struct dial_request dial;
		const char *exec;
		(void)request_parse_start(body, length, &start);
		(void)request_parse_stdin(body, length, &input);
		(void)request_parse_signal(body, length, &signal);
		(void)request_parse_query(body, length, &exec);
		(void)request_parse_window(body, length, &window);
		(void)request_parse_resize(body, length, &resize);
		(void)request_parse_dial(body, length, &dial);
		free(body);
	}
}

static void numbers(void)
{
	uint64_t value;
	char text[21];
	number_write(text, 0);
	CHECK(strcmp(text, "0") == 0);
	number_write(text, UINT64_MAX);
	CHECK(strcmp(text, "18446744073709551615") == 0);
	CHECK(strcmp(number_read("42 rest", 100, &value), " rest") == 0 && value == 42);
	CHECK(number_read("99", 100, &value) && value == 99);
	CHECK(!number_read("100", 100, &value));
	CHECK(!number_read("", 100, &value) && !number_read("x", 100, &value) && !number_read("-1", 100, &value));
	CHECK(!number_read("99999999999999999999999", UINT64_MAX, &value));
	CHECK(number_read("0", 1, &value) && value == 0);
}

int main(void)
{
	RUN(start_is_taken);
	RUN(start_is_refused);
	RUN(exec_ids);
	RUN(stdin_is_taken);
	RUN(signals_are_checked);
	RUN(terminals_and_logs_are_asked_for);
	RUN(trees_since_the_input);
	RUN(windows_lives_and_ports);
	RUN(mutations_stay_inside);
	RUN(numbers);
	return 0;
}
