#include "oom.h"

#include "number.h"

#include <string.h>
#include <unistd.h>

static int counter = -1;
static uint64_t claimed; /* all kills below this count are somebody's */

void oom_init(int fd)
{
	counter = fd;
}

int oom_parse(const char *text, uint64_t *kills)
{
	static const char key[] = "oom_kill ";
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (strncmp(line, key, sizeof key - 1) == 0)
			return number_read(line + sizeof key - 1, UINT64_MAX, kills) ? 0 : -1;
	return -1;
}

uint64_t oom_count(void)
{
	char text[512];
	uint64_t kills;
	ssize_t length = counter < 0 ? -1 : pread(counter, text, sizeof text - 1, 0);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	return oom_parse(text, &kills) < 0 ? 0 : kills;
}

uint64_t oom_claim(uint64_t since)
{
	uint64_t now = oom_count(), from = since > claimed ? since : claimed;
	if (now <= from)
		return 0;
	claimed = now;
	return now - from;
}
