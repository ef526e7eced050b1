#include "spec.h"

#include "frame.h"

#include <errno.h>
#include <string.h>

enum {
	MEMORY_MIB_MAX = 1 << 26,
	CPU_MILLIS_MIN = 10, /* below, the quota of one period is less than the kernel accepts */
	CPU_MILLIS_MAX = 1 << 24,
	PIDS_LIMIT_MAX = 1 << 22, /* the kernel's own PID_MAX_LIMIT */
	CPU_WEIGHT_MAX = 10000,   /* the kernel's */
};
static const uint64_t LIFE_SECONDS_MAX = 50ull * 366 * 24 * 3600;

static const char LOWER_CASE[] = "abcdefghijklmnopqrstuvwxyz0123456789";

bool is_sandbox_id(const char *text)
{
	size_t length = strlen(text);
	return length > 3 && length < ID_BYTES && strncmp(text, "sb-", 3) == 0 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") == length;
}

bool is_digest(const char *text)
{
	return strncmp(text, "sha256:", 7) == 0 && strlen(text) == 7 + 64 && strspn(text + 7, "0123456789abcdef") == 64;
}

bool is_host_path(const char *text, size_t max_bytes)
{
	size_t length = strlen(text);
	if (text[0] != '/' || length < 2 || length >= max_bytes)
		return false;
	for (const char *at = strstr(text, ".."); at; at = strstr(at + 1, ".."))
		if (at[-1] == '/' && (at[2] == '/' || at[2] == '\0'))
			return false;
	return true;
}

static bool is_hostname(const char *text)
{
	size_t length = strlen(text);
	return length > 0 && length < HOSTNAME_BYTES && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length &&
	       strchr(LOWER_CASE, text[0]) && strchr(LOWER_CASE, text[length - 1]);
}

static int invalid(struct fault *fault, const char *field)
{
	return fault_set(fault, CODE_INVALID, "parse LAUNCH", EINVAL, "LAUNCH: field %s is missing, repeated or out of range", field);
}

/* The kernel refuses the same layer twice, in words that nobody understands. */
static bool has_layer(const struct launch_spec *spec, const char *digest)
{
	for (int i = 0; i < spec->layer_count; i++)
		if (strcmp(spec->layers[i], digest) == 0)
			return true;
	return false;
}

static int parse_layers(struct launch_spec *spec, const char *at, const char *end, struct fault *fault)
{
	const char *key, *value;
	size_t key_length;
	while ((at = kv_next(at, end, &key, &key_length, &value))) {
		if (key_length != 5 || memcmp(key, "layer", 5) != 0)
			continue;
		if (spec->layer_count == LAYERS_MAX || !is_digest(value) || has_layer(spec, value))
			return invalid(fault, "layer");
		spec->layers[spec->layer_count++] = value;
	}
	return spec->layer_count == 0 ? invalid(fault, "layer") : 0;
}

static int parse_path(const void *body, size_t length, const char *key, size_t max_bytes, const char **out, struct fault *fault)
{
	*out = kv_get(body, length, key);
	return !*out || !is_host_path(*out, max_bytes) ? invalid(fault, key) : 0;
}

/* What older records do not have. */
static int parse_optional(struct launch_spec *spec, const void *body, size_t length, struct fault *fault)
{
	const struct {
		const char *key;
		uint64_t min, max, usual, *out;
	} numbers[] = {
		{"swapMiB", 0, MEMORY_MIB_MAX, 0, &spec->limits.swap_mib},
		{"cpuWeight", 1, CPU_WEIGHT_MAX, CPU_WEIGHT_USUAL, &spec->limits.cpu_weight},
	};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		*numbers[i].out = numbers[i].usual;
		if (kv_get(body, length, numbers[i].key) && kv_get_u64(body, length, numbers[i].key, numbers[i].min, numbers[i].max, numbers[i].out) < 0)
			return invalid(fault, numbers[i].key);
	}
	if (!kv_get(body, length, "disk"))
		return 0;
	return parse_path(body, length, "disk", PATH_BYTES, &spec->disk, fault) < 0 ||
			       parse_path(body, length, "diskTemplate", PATH_BYTES, &spec->disk_template, fault) < 0
		       ? -1
		       : 0;
}

int spec_parse(struct launch_spec *spec, const void *body, size_t length, struct fault *fault)
{
	const struct {
		const char *key;
		uint64_t min, max, *out;
	} numbers[] = {
		{"slot", 0, SLOT_MAX, &spec->slot},
		{"memoryMiB", 1, MEMORY_MIB_MAX, &spec->limits.memory_mib},
		{"cpuMillis", CPU_MILLIS_MIN, CPU_MILLIS_MAX, &spec->limits.cpu_millis},
		{"pids", 1, PIDS_LIMIT_MAX, &spec->limits.pids},
		{"lifeSeconds", 0, LIFE_SECONDS_MAX, &spec->life_seconds},
	};
	*spec = (struct launch_spec){.id = kv_get(body, length, "id"), .hostname = kv_get(body, length, "hostname")};
	if (!spec->id || !is_sandbox_id(spec->id))
		return invalid(fault, "id");
	if (!spec->hostname || !is_hostname(spec->hostname))
		return invalid(fault, "hostname");
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (kv_get_u64(body, length, numbers[i].key, numbers[i].min, numbers[i].max, numbers[i].out) < 0)
			return invalid(fault, numbers[i].key);
	if (parse_path(body, length, "upper", PATH_BYTES, &spec->upper, fault) < 0 || parse_path(body, length, "work", PATH_BYTES, &spec->work, fault) < 0 ||
	    parse_path(body, length, "execdir", PATH_BYTES, &spec->exec_dir, fault) < 0 ||
	    parse_path(body, length, "socket", SOCKET_PATH_BYTES, &spec->socket, fault) < 0 || parse_optional(spec, body, length, fault) < 0)
		return -1;
	return parse_layers(spec, body, (const char *)body + length, fault);
}
