/* Decimal numbers in text, without the weight of the C library's readers. */
#ifndef AETHER_NUMBER_H
#define AETHER_NUMBER_H

#include <stdint.h>

/* Reads digits from `at`. What follows them, or NULL when there is no digit or the number is `limit` or more. */
const char *number_read(const char *at, uint64_t limit, uint64_t *value);
/* Writes it in decimal, ended with NUL. */
void number_write(char text[21], uint64_t value);

#endif
