/*
 * The whole test framework of the C code: CHECK ends the program with the place and the expression; RUN names a case.
 * One program per file; its exit code is the result.
 */
#ifndef DSEC_CHECK_H
#define DSEC_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(expression)                                                                                               \
	do {                                                                                                            \
		if (!(expression)) {                                                                                    \
			fprintf(stderr, "%s:%d: not true: %s (errno %s)\n", __FILE__, __LINE__, #expression, strerror(errno)); \
			exit(1);                                                                                        \
		}                                                                                                       \
	} while (0)

#define RUN(test_case)                                \
	do {                                          \
		test_case();                          \
		printf("ok %s: %s\n", __FILE__ + (strrchr(__FILE__, '/') ? strrchr(__FILE__, '/') + 1 - __FILE__ : 0), #test_case); \
	} while (0)

#endif
