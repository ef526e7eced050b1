/* The texts that a sandbox reads in place of the machine's. */
#include "check.h"
#include "facts.h"

#include <string.h>

static void meminfo_says_the_limits(void)
{
	char text[1024];
	struct cgroup_limits limits = {.memory_mib = 512, .swap_mib = 64};
	size_t length = facts_meminfo(text, sizeof text, &limits);
	CHECK(length == strlen(text) && length < sizeof text && text[length - 1] == '\n');
	CHECK(strncmp(text, "MemTotal:         524288 kB\n", 28) == 0);
	CHECK(strstr(text, "\nMemAvailable:     524288 kB\n") != NULL);
	CHECK(strstr(text, "\nSwapTotal:         65536 kB\n") != NULL);
	CHECK(strstr(text, "\nSReclaimable:          0 kB\n") != NULL);
}

static void meminfo_holds_the_largest_limit(void)
{
	char text[1024];
	struct cgroup_limits limits = {.memory_mib = 1ull << 26, .swap_mib = 1ull << 26};
	CHECK(facts_meminfo(text, sizeof text, &limits) < sizeof text);
}

static void cpuinfo_gives_so_many_paragraphs(void)
{
	static const char TWO[] = "processor\t: 0\nmodel\t: a\n\nprocessor\t: 1\nmodel\t: a\n\n";
	CHECK(facts_cpuinfo(TWO, 1) == strlen("processor\t: 0\nmodel\t: a\n\n"));
	CHECK(facts_cpuinfo(TWO, 2) == strlen(TWO));
	CHECK(facts_cpuinfo(TWO, 7) == strlen(TWO));
	CHECK(facts_cpuinfo("", 1) == 0);
	CHECK(facts_cpuinfo("no paragraph", 1) == strlen("no paragraph"));
}

int main(void)
{
	RUN(meminfo_says_the_limits);
	RUN(meminfo_holds_the_largest_limit);
	RUN(cpuinfo_gives_so_many_paragraphs);
	return 0;
}
