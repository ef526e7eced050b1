#include "tar_block.h"

#include <string.h>

enum { CHECKSUM_DIGITS = 6 };

static int get_octal(const char *field, size_t width, uint64_t *out)
{
	size_t at = 0;
	uint64_t value = 0;
	while (at < width && field[at] == ' ')
		at++;
	for (; at < width && field[at] >= '0' && field[at] <= '7'; at++) {
		if (value >> 61)
			return -1;
		value = value << 3 | (uint64_t)(field[at] - '0');
	}
	for (; at < width; at++)
		if (field[at] != ' ' && field[at] != '\0')
			return -1;
	*out = value;
	return 0;
}

/* GNU's form for what octal digits cannot say: two's complement, the first bit set beside the sign. */
static int get_binary(const char *field, size_t width, int64_t *out)
{
	const uint8_t *bytes = (const uint8_t *)field;
	int negative = (bytes[0] & 0x40) != 0;
	uint64_t value = negative ? UINT64_MAX : 0;
	for (size_t at = 0; at < width; at++) {
		uint8_t byte = bytes[at];
		if (at == 0)
			byte = negative ? byte : byte & 0x7f;
		if (at + 8 < width && byte != (negative ? 0xff : 0))
			return -1; /* more than 64 bits */
		value = value << 8 | byte;
	}
	*out = (int64_t)value;
	return (*out < 0) == negative ? 0 : -1;
}

int tar_get_signed(const char *field, size_t width, int64_t *out)
{
	if ((uint8_t)field[0] & 0x80)
		return get_binary(field, width, out);
	uint64_t value;
	if (get_octal(field, width, &value) < 0 || value > INT64_MAX)
		return -1;
	*out = (int64_t)value;
	return 0;
}

int tar_get(const char *field, size_t width, uint64_t *out)
{
	int64_t value;
	if (tar_get_signed(field, width, &value) < 0 || value < 0)
		return -1;
	*out = (uint64_t)value;
	return 0;
}

int tar_put(char *field, size_t width, uint64_t value)
{
	int fits = width > 1 && (width - 1) * 3 >= 64 ? 1 : value >> ((width - 1) * 3) == 0;
	uint64_t rest = fits ? value : 0;
	field[width - 1] = '\0';
	for (size_t at = width - 1; at > 0; at--) {
		field[at - 1] = (char)('0' + (rest & 7));
		rest >>= 3;
	}
	return fits ? 0 : -1;
}

/* Both ways that archives were ever summed: chars of either sign. */
static void sum(const struct tar_header *header, uint64_t *as_unsigned, int64_t *as_signed)
{
	const uint8_t *bytes = (const uint8_t *)header;
	const size_t from = offsetof(struct tar_header, checksum), to = from + sizeof header->checksum;
	*as_unsigned = 0;
	*as_signed = 0;
	for (size_t at = 0; at < TAR_BLOCK_BYTES; at++) {
		uint8_t byte = at >= from && at < to ? ' ' : bytes[at];
		*as_unsigned += byte;
		*as_signed += (int8_t)byte;
	}
}

int tar_checksum_is_right(const struct tar_header *header)
{
	uint64_t stored, as_unsigned;
	int64_t as_signed;
	if (tar_get(header->checksum, sizeof header->checksum, &stored) < 0)
		return 0;
	sum(header, &as_unsigned, &as_signed);
	return stored == as_unsigned || (as_signed >= 0 && stored == (uint64_t)as_signed);
}

void tar_put_checksum(struct tar_header *header)
{
	uint64_t as_unsigned;
	int64_t as_signed;
	sum(header, &as_unsigned, &as_signed);
	(void)tar_put(header->checksum, CHECKSUM_DIGITS + 1, as_unsigned);
	header->checksum[CHECKSUM_DIGITS + 1] = ' ';
}

int tar_is_zero(const void *bytes, size_t length)
{
	const uint8_t *at = bytes;
	return length == 0 || (at[0] == 0 && memcmp(at, at + 1, length - 1) == 0);
}

size_t tar_padding(uint64_t size)
{
	return (TAR_BLOCK_BYTES - size % TAR_BLOCK_BYTES) % TAR_BLOCK_BYTES;
}
