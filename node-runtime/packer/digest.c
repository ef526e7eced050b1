#include "digest.h"

#include "limits.h"
#include "report.h"
#include "sha256.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

static pthread_t follower;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int followed;
static uint64_t written; /* under the lock, as is `ended` */
static bool ended;
static struct sha256 hash;
static int failure; /* errno of the follower; read when it has ended */

/* How far the file reaches beyond `done`; 0 when it is whole and hashed. */
static uint64_t wait_for_more(uint64_t done)
{
	pthread_mutex_lock(&lock);
	while (written == done && !ended)
		pthread_cond_wait(&more, &lock);
	uint64_t there = written - done;
	pthread_mutex_unlock(&lock);
	return there;
}

static void *follow(void *unused)
{
	static uint8_t part[HASH_BYTES];
	(void)unused;
	uint64_t done = 0;
	for (uint64_t there; (there = wait_for_more(done)) > 0;) {
		ssize_t got = pread(followed, part, there < sizeof part ? (size_t)there : sizeof part, (off_t)done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			failure = got < 0 ? errno : EIO;
			return NULL;
		}
		sha256_add(&hash, part, (size_t)got);
		done += (uint64_t)got;
	}
	return NULL;
}

void digest_follow(int fd)
{
	followed = fd;
	sha256_begin(&hash);
	if ((errno = pthread_create(&follower, NULL, follow, NULL)) != 0)
		fail("start a thread");
}

static void tell(uint64_t bytes, bool is_end)
{
	pthread_mutex_lock(&lock);
	if (bytes > written)
		written = bytes;
	ended |= is_end;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
}

void digest_written(uint64_t bytes)
{
	tell(bytes, false);
}

void digest_end(char hex[65])
{
	tell(0, true);
	pthread_join(follower, NULL);
	if ((errno = failure) != 0)
		fail("read the data file");
	sha256_end(&hash, hex);
}

void digest_of(const void *bytes, uint64_t length, char hex[65])
{
	struct sha256 whole;
	sha256_begin(&whole);
	sha256_add(&whole, bytes, length);
	sha256_end(&whole, hex);
}
