#include "check.h"
#include "scrub.h"

#include <stdbool.h>
#include <stddef.h>

static bool removed(const char *path)
{
	return scrub_match(path) != NULL;
}

static void rules_are_paths(void)
{
	CHECK(!scrub_add("relative"));
	CHECK(!scrub_add("/"));
	CHECK(!scrub_add(""));
	CHECK(!scrub_add("///"));
}

static void patterns_stay_within_one_name(void)
{
	CHECK(scrub_add("/var/log/*.gz"));
	CHECK(removed("/var/log/a.gz"));
	CHECK(!removed("/var/log/a/b.gz"));
	CHECK(!removed("/var/log"));
	CHECK(!removed("/srv/var/log/a.gz"));
}

static void two_stars_stand_for_any_number_of_names(void)
{
	CHECK(scrub_add("/tmp/**"));
	CHECK(removed("/tmp/x") && removed("/tmp/x/y"));
	CHECK(!removed("/tmp") && !removed("/tmpx"));
	CHECK(scrub_add("/**/.bash_history"));
	CHECK(removed("/.bash_history") && removed("/root/.bash_history") && removed("/home/a/b/.bash_history"));
	CHECK(!removed("/root/x.bash_history") && !removed("/root/.bash_history/x"));
	CHECK(scrub_add("/w/**/build/*.o"));
	CHECK(removed("/w/build/a.o") && removed("/w/a/b/build/a.o"));
	CHECK(!removed("/w/a/build/x/a.o"));
}

int main(void)
{
	RUN(rules_are_paths);
	RUN(patterns_stay_within_one_name);
	RUN(two_stars_stand_for_any_number_of_names);
	return 0;
}
