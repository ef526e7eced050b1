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
		const char *exec;
		(void)request_parse_start(body, length, &start);
		(void)request_parse_stdin(body, length, &input);
		(void)request_parse_signal(body, length, &signal);
		(void)request_parse_query(body, length, &exec);
		free(body);
	}
}

static void numbers(void)
{
	uint64_t value;
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
	RUN(mutations_stay_inside);
	RUN(numbers);
	return 0;
}
