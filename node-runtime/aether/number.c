#include "number.h"

#include <stddef.h>

const char *number_read(const char *at, uint64_t limit, uint64_t *value)
{
	uint64_t sum = 0;
	const char *start = at;
	for (; *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');
		if (limit <= digit || sum > (limit - 1 - digit) / 10)
			return NULL;
		sum = sum * 10 + digit;
	}
	*value = sum;
	return at == start ? NULL : at;
}

void number_write(char text[21], uint64_t value)
{
	size_t length = 1;
	for (uint64_t rest = value; rest >= 10; rest /= 10)
		length++;
	text[length] = '\0';
	for (; length > 0; value /= 10)
		text[--length] = (char)('0' + value % 10);
}
