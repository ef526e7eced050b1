/* Why something could not be done: a code for programs, the step, the kernel's number, and a sentence for people. */
#ifndef DSEC_LAUNCHER_FAULT_H
#define DSEC_LAUNCHER_FAULT_H

#define CODE_INVALID "EINVAL"      /* the request is malformed or contradicts what exists */
#define CODE_MISSING "ENOENT"      /* the sandbox, image or file it names is not there */
#define CODE_EPOCH "EPOCH"         /* a newer Edge has taken over, or none has said HELLO */
#define CODE_FOREIGN "FOREIGN"     /* this launcher is another platform's */
#define CODE_TOMBSTONE "TOMBSTONE" /* that sandbox was destroyed */
#define CODE_BUSY "BUSY"           /* in use, or too many ask at once */
#define CODE_NO_SPACE "NO_SPACE"   /* disk or quota */
#define CODE_FULL "FULL"           /* processes, descriptors, namespaces, table */
#define CODE_TIMEOUT "TIMEOUT"
#define CODE_DIED "DIED"           /* the sandbox's first process ended before it was ready */
#define CODE_FAILED "FAILED"       /* the kernel refused; see step and errno */

struct fault {
	const char *code;
	const char *step;
	int error;
	char message[256];
};

/* Both return -1, so that a failing function ends in `return fault_…`. */
int fault_errno(struct fault *fault, const char *step);
int fault_set(struct fault *fault, const char *code, const char *step, int error, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

#endif
