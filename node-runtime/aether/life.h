/* The hard end of a sandbox's total life, Edge or no Edge. */
#ifndef AETHER_LIFE_H
#define AETHER_LIFE_H

#include <stdint.h>

/* `text`: seconds from now in decimal, 0 for no end. 0, or -1 with errno. */
int life_open(const char *text);
/* A new end, counted from now; 0 for none. */
int life_set(uint64_t seconds);

#endif
