/*
 * SHA-256 of the files that are made here, so that nobody has to read them again to know their names.
 *
 * The data file is hashed while it is being written, by a second thread that reads what has been written: never ahead of it, and never
 * in its way, because the sandbox rests until the last byte is written and not until it is hashed.
 */
#ifndef DSEC_PACKER_DIGEST_H
#define DSEC_PACKER_DIGEST_H

#include <stdint.h>

/* Begins to follow a file that is written from front to back. One at a time. */
void digest_follow(int fd);
/* The first `bytes` of it are there and will not change. */
void digest_written(uint64_t bytes);
/* Nothing more comes: waits for the rest. 64 hexadecimal digits. */
void digest_end(char hex[65]);
/* The same of a whole file in memory. */
void digest_of(const void *bytes, uint64_t length, char hex[65]);

#endif
