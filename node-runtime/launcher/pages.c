#include "pages.h"

#include "files.h"
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* linux/fs.h of 6.7; the headers of an older distribution do not have it. */
enum { PAGE_FILE = 1 << 2, PAGE_PRESENT = 1 << 3, PAGE_SWAPPED = 1 << 4, PAGE_ZERO = 1 << 5 };
struct region {
	uint64_t start, end, categories;
};
struct scan_request {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN_PAGES _IOWR('f', 16, struct scan_request)

/* End of what a program can map with four levels of page tables. */
static const uint64_t ADDRESSES_END = (UINT64_C(1) << 47) - 4096;

struct walk {
	pthread_mutex_t lock;
	int pidfd, pagemap, advice;
	enum page_kind kind;
	uint64_t next, left_bytes, advised_bytes;
	bool failed;
};

/* The next ranges of the walk: 0 when there are none. */
static int take(struct walk *walk, struct iovec *ranges)
{
	struct region found[ADVICE_RANGES];
	if (walk->failed || walk->next >= ADDRESSES_END || walk->left_bytes < 4096)
		return 0;
	uint64_t wanted = walk->kind == PAGES_IN_MEMORY ? PAGE_PRESENT : PAGE_SWAPPED;
	uint64_t pages = walk->left_bytes / 4096;
	struct scan_request request = {
		.size = sizeof request,
		.start = walk->next,
		.end = ADDRESSES_END,
		.vec = (uint64_t)(uintptr_t)found,
		.vec_len = ADVICE_RANGES,
		.max_pages = pages < ADVICE_PAGES ? pages : ADVICE_PAGES,
		.category_inverted = PAGE_FILE | PAGE_ZERO,
		.category_mask = wanted | PAGE_FILE | PAGE_ZERO,
		.return_mask = wanted,
	};
	int count = ioctl(walk->pagemap, SCAN_PAGES, &request);
	if (count < 0) {
		walk->failed = true;
		return 0;
	}
	walk->next = request.walk_end > walk->next ? request.walk_end : ADDRESSES_END;
	for (int i = 0; i < count; i++) {
		ranges[i] = (struct iovec){(void *)(uintptr_t)found[i].start, found[i].end - found[i].start};
		walk->left_bytes -= ranges[i].iov_len < walk->left_bytes ? ranges[i].iov_len : walk->left_bytes;
	}
	return count;
}

/* A range that cannot be advised (locked, of a device) is skipped: the call stops at the first such. */
static uint64_t advise(const struct walk *walk, struct iovec *ranges, int count)
{
	uint64_t advised = 0;
	for (int at = 0; at < count;) {
		ssize_t done = syscall(SYS_process_madvise, walk->pidfd, ranges + at, count - at, walk->advice, 0);
		if (done < 0 && (errno == EPERM || errno == ESRCH || errno == ENOSYS))
			return advised;
		uint64_t left = done > 0 ? (uint64_t)done : 0;
		advised += left;
		while (at < count && left >= ranges[at].iov_len)
			left -= ranges[at++].iov_len;
		at++;
	}
	return advised;
}

static void *walk_on(void *context)
{
	struct walk *walk = context;
	struct iovec ranges[ADVICE_RANGES];
	for (;;) {
		pthread_mutex_lock(&walk->lock);
		int count = take(walk, ranges);
		bool is_over = walk->failed || walk->next >= ADDRESSES_END || walk->left_bytes < 4096;
		pthread_mutex_unlock(&walk->lock);
		uint64_t advised = count > 0 ? advise(walk, ranges, count) : 0;
		pthread_mutex_lock(&walk->lock);
		walk->advised_bytes += advised;
		pthread_mutex_unlock(&walk->lock);
		if (count == 0 && is_over)
			return NULL;
	}
}

static int open_pagemap(pid_t pid)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/%d/pagemap", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int64_t pages_advise(pid_t pid, enum page_kind kind, int advice, uint64_t most_bytes, int threads)
{
	pthread_t others[ADVICE_THREADS_MAX];
	int started = 0;
	struct walk walk = {.lock = PTHREAD_MUTEX_INITIALIZER, .kind = kind, .advice = advice, .left_bytes = most_bytes};
	walk.pidfd = pidfd_open(pid, 0);
	walk.pagemap = open_pagemap(pid);
	/* alive after both are open: they are of one process, also when the number is given out anew */
	if (walk.pidfd >= 0 && walk.pagemap >= 0 && pidfd_send_signal(walk.pidfd, 0, NULL, 0) == 0) {
		while (started < threads - 1 && started < ADVICE_THREADS_MAX && pthread_create(&others[started], NULL, walk_on, &walk) == 0)
			started++;
		walk_on(&walk);
		while (started > 0)
			pthread_join(others[--started], NULL);
	}
	close_fd(&walk.pidfd);
	close_fd(&walk.pagemap);
	return walk.failed && walk.advised_bytes == 0 ? -1 : (int64_t)walk.advised_bytes;
}
