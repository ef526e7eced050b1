/*
 * Rules that say what a snapshot must not carry. A rule is a path below / with patterns: `*` and `?` stand for part of one name,
 * `**` for any number of names. What matches is left out with all that lies below it, as if the sandbox had never written it.
 */
#ifndef DSEC_PACKER_SCRUB_H
#define DSEC_PACKER_SCRUB_H

/* Adds one rule; false when it is none or there are too many. */
int scrub_add(const char *rule);
/* The rule that matches `path` (which begins with /), or NULL. */
const char *scrub_match(const char *path);

#endif
