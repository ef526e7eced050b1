/* Frames over a real socket pair: whole, split at every byte, oversized, cut off; and the key=value walk. */
#include "check.h"
#include "frame.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static int pair[2];

static void open_pair(void)
{
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
}

static void close_pair(void)
{
	close(pair[0]);
	close(pair[1]);
}

static void round_trip(void)
{
	open_pair();
	CHECK(frame_send(pair[0], 7, 0x1122334455667788u, "abc", 3) == 0);
	CHECK(frame_send(pair[0], 8, 1, NULL, 0) == 0);
	struct frame_reader reader;
	frame_reader_init(&reader);
	CHECK(frame_reader_fill(&reader, pair[1]) == 1);
	struct frame_header header;
	const uint8_t *body;
	CHECK(frame_reader_next(&reader, &header, &body) == 1);
	CHECK(header.length == 3 && header.type == 7 && header.flags == 0 && header.id == 0x1122334455667788u);
	CHECK(memcmp(body, "abc", 3) == 0);
	frame_reader_consume(&reader);
	CHECK(frame_reader_next(&reader, &header, &body) == 1);
	CHECK(header.length == 0 && header.type == 8 && header.id == 1);
	frame_reader_consume(&reader);
	CHECK(frame_reader_next(&reader, &header, &body) == 0);
	CHECK(frame_reader_fill(&reader, pair[1]) == 0);
	frame_reader_free(&reader);
	close_pair();
}

static void one_byte_at_a_time(void)
{
	open_pair();
	int relay[2];
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, relay) == 0);
	char sent[5000];
	memset(sent, 'x', sizeof sent);
	CHECK(frame_send(pair[0], 3, 9, sent, sizeof sent) == 0);
	struct frame_reader reader;
	frame_reader_init(&reader);
	struct frame_header header;
	const uint8_t *body;
	char byte;
	size_t bytes = 0;
	while (read(pair[1], &byte, 1) == 1) {
		CHECK(frame_reader_next(&reader, &header, &body) == 0);
		CHECK(write(relay[0], &byte, 1) == 1);
		CHECK(frame_reader_fill(&reader, relay[1]) == 1);
		bytes++;
	}
	CHECK(bytes == FRAME_HEADER_BYTES + sizeof sent);
	CHECK(frame_reader_next(&reader, &header, &body) == 1);
	CHECK(header.length == sizeof sent && memcmp(body, sent, sizeof sent) == 0);
	frame_reader_free(&reader);
	close(relay[0]);
	close(relay[1]);
	close_pair();
}

static void oversized_is_refused(void)
{
	open_pair();
	const uint8_t header[FRAME_HEADER_BYTES] = {1, 0, 0x10, 0};
	CHECK(write(pair[0], header, sizeof header) == sizeof header);
	struct frame_reader reader;
	frame_reader_init(&reader);
	CHECK(frame_reader_fill(&reader, pair[1]) == -1 && errno == EMSGSIZE);
	frame_reader_free(&reader);
	CHECK(frame_send(pair[0], 1, 1, NULL, FRAME_BODY_MAX + 1) == -1 && errno == EMSGSIZE);
	close_pair();
}

static void end_of_stream(void)
{
	open_pair();
	CHECK(write(pair[0], "\1\0\0", 3) == 3);
	close(pair[0]);
	struct frame_reader reader;
	frame_reader_init(&reader);
	CHECK(frame_reader_fill(&reader, pair[1]) == 1);
	CHECK(frame_reader_fill(&reader, pair[1]) == -1 && errno == 0);
	frame_reader_free(&reader);
	close(pair[1]);
}

static void full_reader_is_told_apart(void)
{
	open_pair();
	char block[60000] = {0};
	int result;
	do
		result = frame_send(pair[0], 1, 1, block, sizeof block);
	while (result == 0);
	CHECK(errno == EAGAIN || errno == ETIMEDOUT);
	close_pair();
}

static void walks_pairs(void)
{
	const char body[] = "a=1\0b=\0a=two=2\0";
	CHECK(strcmp(kv_get(body, sizeof body - 1, "a"), "1") == 0);
	CHECK(strcmp(kv_get(body, sizeof body - 1, "b"), "") == 0);
	CHECK(kv_get(body, sizeof body - 1, "c") == NULL);
	CHECK(kv_get(body, 3, "a") == NULL); /* no NUL within the body */
	const char *at = body, *end = body + sizeof body - 1, *key, *value;
	size_t key_length, count = 0;
	while ((at = kv_next(at, end, &key, &key_length, &value)))
		count++;
	CHECK(count == 3 && strcmp(value, "two=2") == 0);
}

static void reads_numbers(void)
{
	const char body[] = "n=42\0max=18446744073709551615\0over=18446744073709551616\0neg=-1\0none=\0";
	size_t length = sizeof body - 1;
	uint64_t out = 0;
	CHECK(kv_get_u64(body, length, "n", 0, 42, &out) == 0 && out == 42);
	CHECK(kv_get_u64(body, length, "n", 0, 41, &out) == -1 && errno == EINVAL);
	CHECK(kv_get_u64(body, length, "n", 43, 100, &out) == -1);
	CHECK(kv_get_u64(body, length, "n", 0, 3, &out) == -1);
	CHECK(kv_get_u64(body, length, "max", 0, UINT64_MAX, &out) == 0 && out == UINT64_MAX);
	CHECK(kv_get_u64(body, length, "over", 0, UINT64_MAX, &out) == -1);
	CHECK(kv_get_u64(body, length, "neg", 0, 10, &out) == -1);
	CHECK(kv_get_u64(body, length, "none", 0, 10, &out) == -1);
	CHECK(kv_get_u64(body, length, "missing", 0, 10, &out) == -1);
}

int main(void)
{
	RUN(round_trip);
	RUN(one_byte_at_a_time);
	RUN(oversized_is_refused);
	RUN(end_of_stream);
	RUN(full_reader_is_told_apart);
	RUN(walks_pairs);
	RUN(reads_numbers);
	return 0;
}
