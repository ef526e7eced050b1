/*
 * Holds memory for tests of pausing: `memory-holder MIB [CHILDREN]` fills so many MiB with text that compresses about as well as a
 * program's data does, forks children that share it, says `filled`, and for every line that it reads says a checksum of all of it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, RANDOM_WORDS_PER_PAGE = 96 };

static void fill(uint64_t *words, size_t count)
{
	uint64_t random = 88172645463325252u;
	for (size_t i = 0; i < count; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		words[i] = i % (PAGE / sizeof *words) < RANDOM_WORDS_PER_PAGE ? random : i / (PAGE / sizeof *words);
	}
}

static uint64_t sum_of(const uint64_t *words, size_t count)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum = sum * 31 + words[i];
	return sum;
}

int main(int argc, char **argv)
{
	size_t bytes = (size_t)(argc > 1 ? atol(argv[1]) : 1) << 20, count = bytes / sizeof(uint64_t);
	uint64_t *words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (words == MAP_FAILED)
		return 1;
	fill(words, count);
	for (int children = argc > 2 ? atoi(argv[2]) : 0; children > 0; children--)
		if (fork() == 0)
			for (;;)
				pause();
	printf("filled %llx\n", (unsigned long long)sum_of(words, count));
	fflush(stdout);
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		printf("sum %llx\n", (unsigned long long)sum_of(words, count));
		fflush(stdout);
	}
	return 0;
}
