/*
 * Advice about the private memory of a frozen process, page range by page range.
 *
 * Ranges come from PAGEMAP_SCAN as numbers: nothing that a sandbox chose, like the names in /proc/<pid>/maps, is read.
 */
#ifndef DSEC_LAUNCHER_PAGES_H
#define DSEC_LAUNCHER_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Which pages of a process: those in memory and not of a file, or those that lie in swap. */
enum page_kind { PAGES_IN_MEMORY, PAGES_IN_SWAP };

/* Gives up to `most_bytes` of a process's pages the advice (MADV_…), on several threads. Bytes advised, or -1: not on this kernel. */
int64_t pages_advise(pid_t pid, enum page_kind kind, int advice, uint64_t most_bytes, int threads);

#endif
