/*
 * Takes one kind of thing until there is no more or the count is reached, and says how many and why it stopped.
 *
 *   exhaust KIND COUNT [hold]     with `hold` it keeps what it has until it is killed
 */
#include "attempt.h"

#include <mqueue.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { PAGE = 4096, MEGABYTE = 1 << 20 };

/* Takes the n-th; -1 and errno when there is none. */
typedef long taker(long n);

static long take_descriptor(long n) { (void)n; return open("/dev/null", O_RDONLY); }
static long take_inotify(long n) { (void)n; return inotify_init1(0); }
static long take_terminal(long n) { (void)n; return open("/dev/pts/ptmx", O_RDWR | O_NOCTTY); }

static long take_watch(long n)
{
	static int instance = -1;
	char path[64];
	if (instance < 0 && (instance = inotify_init1(0)) < 0)
		return -1;
	snprintf(path, sizeof path, "/dev/shm/watched-%ld", n);
	if (mkdir(path, 0700) < 0)
		return -1;
	return inotify_add_watch(instance, path, IN_MODIFY);
}

static long take_signal(long n)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = (int)n});
}

static long take_queue(long n)
{
	char name[32];
	struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = 8192};
	snprintf(name, sizeof name, "/q%ld-%d", n, getpid());
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
	int error = errno;
	mq_unlink(name); /* it lives as long as it is open */
	errno = error;
	return queue;
}

static long take_locked_page(long n)
{
	(void)n;
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED ? -1 : mlock(page, PAGE);
}

static long take_process(long n)
{
	(void)n;
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
	return child;
}

/* A megabyte of ours, touched: beyond the limit the kernel kills somebody. */
static long take_memory(long n)
{
	char *bytes = mmap(NULL, MEGABYTE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (bytes == MAP_FAILED)
		return -1;
	memset(bytes, (int)n + 1, MEGABYTE);
	return 0;
}

static long take_shared_memory(long n)
{
	int id = shmget(IPC_PRIVATE, MEGABYTE, IPC_CREAT | 0600);
	void *bytes = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
	if (bytes == (void *)-1)
		return -1;
	memset(bytes, (int)n + 1, MEGABYTE);
	return 0;
}

static long take_inode(long n)
{
	char path[64];
	snprintf(path, sizeof path, "/dev/shm/inode-%ld", n);
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	return fd < 0 ? -1 : close(fd);
}

/* A pipe made as large as it may be and filled. */
static long take_full_pipe(long n)
{
	static char bytes[MEGABYTE];
	int ends[2];
	(void)n;
	if (pipe2(ends, O_NONBLOCK) < 0)
		return -1;
	if (fcntl(ends[1], F_SETPIPE_SZ, MEGABYTE) < 0 && errno != EPERM)
		return -1;
	return write(ends[1], bytes, sizeof bytes) > 0 ? 0 : -1;
}

/* A connection over lo whose receiver never reads. */
static long take_full_connection(long n)
{
	static char bytes[MEGABYTE];
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	int size = 64 * MEGABYTE;
	(void)n;
	int listener = socket(AF_INET, SOCK_STREAM, 0), sender = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || sender < 0)
		return -1;
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	setsockopt(sender, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) < 0 || connect(sender, (struct sockaddr *)&address, sizeof address) < 0 ||
	    accept(listener, NULL, NULL) < 0)
		return -1;
	close(listener);
	long held = 0;
	for (ssize_t sent; (sent = send(sender, bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
		held += sent;
	return held > 0 ? held : -1;
}

static const struct {
	const char *kind;
	taker *take;
} KINDS[] = {
	{"descriptor", take_descriptor}, {"inotify", take_inotify}, {"watch", take_watch}, {"terminal", take_terminal}, {"signal", take_signal},
	{"queue", take_queue}, {"locked page", take_locked_page}, {"process", take_process}, {"memory", take_memory},
	{"shared memory", take_shared_memory}, {"inode", take_inode}, {"pipe", take_full_pipe}, {"connection", take_full_connection},
};

static taker *taker_of(const char *kind)
{
	for (int i = 0; i < ATTEMPTS(KINDS); i++)
		if (strcmp(KINDS[i].kind, kind) == 0)
			return KINDS[i].take;
	exit(2);
}

static void take_all_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	taker *take = taker_of(argv[1]);
	long taken = 0, wanted = atol(argv[2]), amount = 0;
	take_all_descriptors();
	while (taken < wanted) {
		long got = take(taken);
		if (got < 0)
			break;
		amount += got;
		taken++;
	}
	const char *stopped = taken == wanted ? "enough" : strerrorname_np(errno);
	printf("taken\t%ld\nstopped\t%s\namount\t%ld\n", taken, stopped, amount);
	fflush(stdout);
	while (argc > 3)
		pause();
	return 0;
}
