/* Records of PAX extended headers, `length key=value\n`: values are bytes, keys are text. Pure. */
#ifndef AETHER_TAR_PAX_H
#define AETHER_TAR_PAX_H

#include <stddef.h>
#include <stdint.h>

struct pax_record {
	const char *key;
	size_t key_length;
	const char *value;
	size_t value_length;
};

/* Takes the record at *at and moves there behind it. 1; 0 at `end`; -1 when there is none. */
int pax_next(const char **at, const char *end, struct pax_record *record);
int pax_is(const struct pax_record *record, const char *key);
/* A decimal number that is the whole value. 0, or -1. */
int pax_number(const struct pax_record *record, uint64_t *out);
/* Seconds with a fraction, also before 1970. 0, or -1. */
int pax_time(const struct pax_record *record, int64_t *seconds, uint32_t *nanoseconds);

struct pax_buffer {
	char *bytes;
	size_t length, capacity;
	int failed; /* no memory: nothing of it may be used */
};

/* Appends one record. `prefix` and `key` are joined. */
void pax_add(struct pax_buffer *buffer, const char *prefix, const char *key, const void *value, size_t length);
/* Appends whole records as they are. */
void pax_append(struct pax_buffer *buffer, const char *records, size_t length);
void pax_add_number(struct pax_buffer *buffer, const char *key, uint64_t value);
void pax_add_time(struct pax_buffer *buffer, const char *key, int64_t seconds, uint32_t nanoseconds);

#endif
