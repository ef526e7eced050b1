#include "scrub.h"

#include "limits.h"
#include "report.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct rule {
	const char *text;
	char *parts[RULE_PARTS_MAX];
	int count;
};

static struct rule rules[RULES_MAX];
static int rule_count;

static int split(struct rule *rule, char *copy)
{
	char *save = NULL;
	for (char *part = strtok_r(copy, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
		if (rule->count == RULE_PARTS_MAX)
			return 0;
		rule->parts[rule->count++] = part;
	}
	return rule->count > 0;
}

int scrub_add(const char *text)
{
	struct rule *rule = &rules[rule_count];
	if (rule_count == RULES_MAX || text[0] != '/')
		return 0;
	*rule = (struct rule){.text = text};
	char *copy = must(strdup(text + 1));
	if (!split(rule, copy)) {
		free(copy);
		return 0;
	}
	rule_count++;
	return 1;
}

/* Parts `at`… of the rule against the rest of the path, which begins behind a slash. */
static int match_from(const struct rule *rule, int at, const char *rest)
{
	if (at == rule->count)
		return *rest == '\0';
	if (strcmp(rule->parts[at], "**") == 0) {
		if (at == rule->count - 1)
			return *rest != '\0';
		for (const char *next = rest; next; next = strchr(next, '/'), next = next ? next + 1 : NULL)
			if (match_from(rule, at + 1, next))
				return 1;
		return 0;
	}
	size_t length = strcspn(rest, "/");
	char name[256];
	if (length == 0 || length >= sizeof name)
		return 0;
	memcpy(name, rest, length);
	name[length] = '\0';
	if (fnmatch(rule->parts[at], name, FNM_NOESCAPE) != 0)
		return 0;
	return match_from(rule, at + 1, rest[length] ? rest + length + 1 : rest + length);
}

const char *scrub_match(const char *path)
{
	for (int i = 0; i < rule_count; i++)
		if (match_from(&rules[i], 0, path + 1))
			return rules[i].text;
	return NULL;
}
