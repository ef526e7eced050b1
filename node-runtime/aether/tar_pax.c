#include "tar_pax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NANOSECOND_DIGITS = 9, BUFFER_FIRST_BYTES = 512 };

static const char *digits(const char *at, const char *end, uint64_t *out)
{
	uint64_t value = 0;
	const char *from = at;
	for (; at < end && *at >= '0' && *at <= '9'; at++) {
		if (value > (UINT64_MAX - 9) / 10)
			return NULL;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	*out = value;
	return at == from ? NULL : at;
}

int pax_next(const char **at, const char *end, struct pax_record *record)
{
	uint64_t length;
	const char *from = *at;
	if (from >= end)
		return 0;
	const char *key = digits(from, end, &length);
	if (!key || key == end || *key != ' ' || length > (uint64_t)(end - from) || length < (uint64_t)(key + 1 - from) + 2)
		return -1;
	const char *last = from + length - 1;
	key++;
	const char *equals = memchr(key, '=', (size_t)(last - key));
	if (*last != '\n' || !equals || equals == key)
		return -1;
	*record = (struct pax_record){key, (size_t)(equals - key), equals + 1, (size_t)(last - equals - 1)};
	*at = last + 1;
	return 1;
}

int pax_is(const struct pax_record *record, const char *key)
{
	return strlen(key) == record->key_length && memcmp(key, record->key, record->key_length) == 0;
}

int pax_number(const struct pax_record *record, uint64_t *out)
{
	const char *end = record->value + record->value_length;
	return digits(record->value, end, out) == end ? 0 : -1;
}

/* The digits behind the point; more than nanoseconds can say is cut off. */
static int fraction(const char *at, const char *end, uint32_t *nanoseconds)
{
	uint32_t value = 0;
	int count = 0;
	for (; at < end; at++) {
		if (*at < '0' || *at > '9')
			return -1;
		if (count++ < NANOSECOND_DIGITS)
			value = value * 10 + (uint32_t)(*at - '0');
	}
	for (; count < NANOSECOND_DIGITS; count++)
		value *= 10;
	*nanoseconds = value;
	return 0;
}

int pax_time(const struct pax_record *record, int64_t *seconds, uint32_t *nanoseconds)
{
	const char *at = record->value, *end = at + record->value_length;
	int negative = at < end && *at == '-';
	uint64_t whole;
	at = digits(at + negative, end, &whole);
	if (!at || whole > INT64_MAX / 2 || (at < end && *at != '.') || fraction(at < end ? at + 1 : at, end, nanoseconds) < 0)
		return -1;
	*seconds = negative ? -(int64_t)whole : (int64_t)whole;
	if (negative && *nanoseconds > 0) { /* -1.25 is 0.75 after -2 */
		*seconds -= 1;
		*nanoseconds = 1000000000u - *nanoseconds;
	}
	return 0;
}

static int make_room(struct pax_buffer *buffer, size_t more)
{
	size_t wanted = buffer->length + more;
	if (wanted <= buffer->capacity)
		return 0;
	size_t capacity = wanted < BUFFER_FIRST_BYTES ? BUFFER_FIRST_BYTES : 2 * wanted;
	char *grown = realloc(buffer->bytes, capacity);
	if (!grown)
		return -1;
	buffer->bytes = grown;
	buffer->capacity = capacity;
	return 0;
}

static size_t count_digits(size_t value)
{
	size_t count = 1;
	for (; value >= 10; value /= 10)
		count++;
	return count;
}

/* The length counts its own digits. */
static size_t record_length(size_t rest)
{
	size_t length = rest + count_digits(rest);
	return rest + count_digits(length);
}

void pax_add(struct pax_buffer *buffer, const char *prefix, const char *key, const void *value, size_t length)
{
	size_t whole = record_length(strlen(prefix) + strlen(key) + length + 3); /* blank, equals sign, line break */
	if (make_room(buffer, whole + 1) < 0) {
		buffer->failed = 1;
		return;
	}
	char *at = buffer->bytes + buffer->length;
	int head = snprintf(at, whole + 1, "%zu %s%s=", whole, prefix, key);
	memcpy(at + head, value, length);
	at[whole - 1] = '\n';
	buffer->length += whole;
}

void pax_append(struct pax_buffer *buffer, const char *records, size_t length)
{
	if (make_room(buffer, length) < 0) {
		buffer->failed = 1;
		return;
	}
	memcpy(buffer->bytes + buffer->length, records, length);
	buffer->length += length;
}

void pax_add_number(struct pax_buffer *buffer, const char *key, uint64_t value)
{
	char text[24];
	pax_add(buffer, "", key, text, (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)value));
}

void pax_add_time(struct pax_buffer *buffer, const char *key, int64_t seconds, uint32_t nanoseconds)
{
	char text[40];
	const char *sign = "";
	if (seconds < 0) {
		sign = "-";
		seconds = -seconds;
		if (nanoseconds > 0) {
			seconds -= 1;
			nanoseconds = 1000000000u - nanoseconds;
		}
	}
	int length = nanoseconds == 0 ? snprintf(text, sizeof text, "%s%lld", sign, (long long)seconds)
				      : snprintf(text, sizeof text, "%s%lld.%09u", sign, (long long)seconds, nanoseconds);
	pax_add(buffer, "", key, text, (size_t)length);
}
