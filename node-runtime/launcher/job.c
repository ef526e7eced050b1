#include "job.h"

#include "files.h"
#include "launcher.h"
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct job {
	struct job *next;
	struct job_order order;
	struct watch process; /* pidfd of its worker */
	int result;           /* pipe from it */
	bool cancelled;
};

static struct job *running, *waiting;
static int running_count, waiting_count;

static void start_waiting(void);

static void finish(struct job *job, struct job_outcome *outcome)
{
	job->order.answer(&job->order, outcome);
	free(job);
}

static void refuse(struct job *job, const char *code, int error, const char *message)
{
	struct job_outcome outcome = {.failed = true};
	fault_set(&outcome.fault, code, "run worker", error, "%s", message);
	finish(job, &outcome);
}

static void take_out(struct job **list, struct job *job)
{
	while (*list != job)
		list = &(*list)->next;
	*list = job->next;
}

static void on_worker_end(struct watch *watch, uint32_t events)
{
	(void)events;
	struct job *job = OWNER_OF(watch, struct job, process);
	struct job_outcome outcome = {0};
	bool answered = read(job->result, &outcome, sizeof outcome) == (ssize_t)sizeof outcome;
	waitid(P_PIDFD, (id_t)watch->fd, NULL, WEXITED | WNOHANG);
	loop_close(watch);
	close_fd(&job->result);
	take_out(&running, job);
	running_count--;
	if (job->cancelled)
		refuse(job, CODE_BUSY, ECANCELED, "the sandbox was wanted for something else; ask again");
	else if (!answered)
		refuse(job, CODE_TIMEOUT, ETIMEDOUT, "the worker was ended before it was done");
	else
		finish(job, &outcome);
	start_waiting();
}

static void work(const struct job_order *order, int result, pid_t launcher_pid)
{
	struct job_outcome outcome = {0};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher_pid)
		_exit(1);
	server_abandon();
	alarm((unsigned)order->timeout_seconds);
	order->work(order, &outcome);
	ssize_t written = write(result, &outcome, sizeof outcome); /* fits into a pipe */
	_exit(written == (ssize_t)sizeof outcome ? 0 : 1);
}

static int fork_worker(struct job *job)
{
	int ends[2];
	pid_t self = getpid();
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0)
		work(&job->order, ends[1], self);
	close_fd(&ends[1]);
	int pidfd = pid < 0 ? -1 : pidfd_open(pid, 0);
	if (pidfd < 0 || loop_watch(&job->process, pidfd, on_worker_end) < 0) {
		close_fd(&pidfd);
		close_fd(&ends[0]);
		if (pid > 0) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		return -1;
	}
	job->result = ends[0];
	return 0;
}

static void start(struct job *job)
{
	if (fork_worker(job) < 0) {
		refuse(job, CODE_FULL, errno, "no process for a worker");
		return;
	}
	job->next = running;
	running = job;
	running_count++;
}

static void start_waiting(void)
{
	while (waiting && running_count < JOBS_AT_ONCE) {
		struct job *job = waiting;
		waiting = job->next;
		waiting_count--;
		start(job);
	}
}

int job_submit(const struct job_order *order, struct fault *fault)
{
	struct job *job = waiting_count < JOBS_WAITING_MAX ? calloc(1, sizeof *job) : NULL;
	if (!job)
		return fault_set(fault, CODE_BUSY, "run worker", EAGAIN, "%d requests wait for a worker already", waiting_count);
	job->order = *order;
	job->process.fd = job->result = -1;
	struct job **end = &waiting;
	while (*end)
		end = &(*end)->next;
	*end = job;
	waiting_count++;
	start_waiting();
	return 0;
}

void jobs_cancel(const char *id)
{
	for (struct job **at = &waiting, *job; (job = *at);) {
		if (strcmp(job->order.id, id) != 0) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		waiting_count--;
		refuse(job, CODE_BUSY, ECANCELED, "the sandbox was wanted for something else; ask again");
	}
	for (struct job *job = running; job; job = job->next)
		if (strcmp(job->order.id, id) == 0) {
			job->cancelled = true;
			pidfd_send_signal(job->process.fd, SIGKILL, NULL, 0);
		}
}
