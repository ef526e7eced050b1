/*
 * What the packer says to the Edge, one line each on standard output; text is percent-encoded where it may hold anything.
 *
 *   ready                          it may be told to go: the sandbox is to be at rest then
 *   removed RULE PATH              left out by a rule
 *   taken key=value …              everything is read, the sandbox may run on; counts
 *   done DATA IMAGE                both files are written: their digests, `-` for a data file that holds nothing and may go
 *   refused PATH REASON            a file that cannot be kept as it is; exit code 3
 *   failed ERRNO STEP              the system said no; exit code 4
 */
#ifndef DSEC_PACKER_REPORT_H
#define DSEC_PACKER_REPORT_H

enum { EXIT_USAGE = 2, EXIT_REFUSED = 3, EXIT_FAILED = 4 };

struct entry;

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_removed(const char *rule, const char *path);
/* Both end the program: nothing of it outlives it. */
_Noreturn void refuse(const char *path, const char *reason);
_Noreturn void fail(const char *step);
void *must(void *memory);

#endif
