/* What of a LAUNCH is taken and what is refused; and that no bytes at all make the parser read beyond them. */
#include "check.h"
#include "spec.h"

#define DIGEST_A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const char GOOD[] = "id=sb-0-00000000000000000001-a\0hostname=box\0slot=7\0memoryMiB=64\0cpuMillis=500\0pids=32\0lifeSeconds=60\0"
			   "upper=/d/upper\0work=/d/work\0execdir=/d/exec\0socket=/r/a.sock\0layer=" DIGEST_A "\0layer=" DIGEST_B "\0";

static struct launch_spec spec;
static struct fault fault;

/* GOOD with one field replaced. */
static int parse_with(const char *key, const char *value)
{
	static char body[8192];
	size_t length = 0, key_length = strlen(key);
	for (const char *at = GOOD; at < GOOD + sizeof GOOD - 1; at += strlen(at) + 1)
		if (strncmp(at, key, key_length) != 0 || at[key_length] != '=')
			length += (size_t)sprintf(body + length, "%s", at) + 1;
	if (value)
		length += (size_t)sprintf(body + length, "%s=%s", key, value) + 1;
	return spec_parse(&spec, body, length, &fault);
}

static void takes_what_is_right(void)
{
	CHECK(spec_parse(&spec, GOOD, sizeof GOOD - 1, &fault) == 0);
	CHECK(strcmp(spec.id, "sb-0-00000000000000000001-a") == 0 && strcmp(spec.hostname, "box") == 0);
	CHECK(spec.slot == 7 && spec_owner(spec.slot) == 100000 + 7 * 65536);
	CHECK(spec.limits.memory_mib == 64 && spec.limits.cpu_millis == 500 && spec.limits.pids == 32 && spec.life_seconds == 60);
	CHECK(spec.layer_count == 2 && strcmp(spec.layers[0], DIGEST_A) == 0 && strcmp(spec.layers[1], DIGEST_B) == 0);
	CHECK(parse_with("slot", "65533") == 0 && spec_owner(spec.slot) + 65535ull < 4294967295ull);
}

static void takes_what_may_be_left_out(void)
{
	CHECK(spec_parse(&spec, GOOD, sizeof GOOD - 1, &fault) == 0);
	CHECK(spec.limits.swap_mib == 0 && spec.limits.cpu_weight == 100 && !spec.disk && !spec.disk_template);
	CHECK(parse_with("swapMiB", "32") == 0 && spec.limits.swap_mib == 32);
	CHECK(parse_with("cpuWeight", "10000") == 0 && spec.limits.cpu_weight == 10000);
	CHECK(parse_with("disk", "/d/disk.ext4") == -1 && strstr(fault.message, "diskTemplate"));
}

static void refuses_each_bad_field(void)
{
	static const struct {
		const char *key, *value;
	} BAD[] = {
		{"id", NULL}, {"id", ""}, {"id", "x"}, {"id", "sb-"}, {"id", "sb-../../etc"}, {"id", "sb-A"}, {"id", "sb-a.b"},
		{"hostname", ""}, {"hostname", "-a"}, {"hostname", "a_b"}, {"hostname", "a b"}, {"hostname", "A"},
		{"slot", "65534"}, {"slot", "-1"}, {"slot", ""}, {"memoryMiB", "0"}, {"memoryMiB", "99999999999999999999"}, {"cpuMillis", "9"}, {"pids", "0"}, {"pids", "x"},
		{"lifeSeconds", NULL}, {"upper", "relative"}, {"upper", "/a/../b"}, {"upper", "/"}, {"work", ""}, {"execdir", NULL},
		{"socket", "/this/path/is/longer/than/a/socket/address/may/be/because/the/kernel/gives/it/only/one/hundred/and/eight/bytes"},
		{"swapMiB", "-1"}, {"cpuWeight", "0"}, {"cpuWeight", "10001"}, {"disk", "../disk"},
		{"layer", NULL}, {"layer", "sha256:abc"}, {"layer", "sha512:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
	};
	for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
		CHECK(parse_with(BAD[i].key, BAD[i].value) == -1);
		CHECK(strcmp(fault.code, CODE_INVALID) == 0 && strstr(fault.message, BAD[i].key));
	}
}

static void knows_a_path(void)
{
	CHECK(is_host_path("/a/..b/c", 100) && is_host_path("/a/b..", 100) && is_host_path("/a...b", 100));
	CHECK(!is_host_path("/a/..", 100) && !is_host_path("/../a", 100) && !is_host_path("/abc", 4));
}

static void survives_any_bytes(void)
{
	unsigned state = 12345; /* the seed decides all */
	for (int round = 0; round < 20000; round++) {
		size_t length = round % 300;
		char *body = malloc(length + 1); /* exact size: the sanitizer sees one byte too many */
		CHECK(body);
		for (size_t i = 0; i < length; i++) {
			state = state * 1103515245u + 12345u;
			body[i] = "=\0sb-0slotayer1/."[(state >> 16) % 17];
		}
		char *exact = realloc(body, length ? length : 1);
		CHECK(exact && spec_parse(&spec, exact, length, &fault) == -1);
		free(exact);
	}
}

int main(void)
{
	RUN(takes_what_is_right);
	RUN(takes_what_may_be_left_out);
	RUN(refuses_each_bad_field);
	RUN(knows_a_path);
	RUN(survives_any_bytes);
	return 0;
}
