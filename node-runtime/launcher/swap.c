#include "swap.h"

#include "files.h"
#include "frame.h"
#include "job.h"
#include "launcher.h"
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/swap.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, LABEL_BYTES = 16, NO_DEVICE = -1 };
/* Above whatever swap the host has on disks: what is paused goes here first. */
static const int PRIORITY = 100;
static const char SIGNATURE[] = "SWAPSPACE2";
/* In the run directory: which device is being made ours. */
static const char NUMBER_FILE[] = "swap";

/* The first page of a swap area, as mkswap writes it. */
struct swap_header {
	char boot[1024];
	uint32_t version, last_page, bad_pages;
	uint8_t uuid[16];
	char label[LABEL_BYTES];
	char padding[PAGE_BYTES - 1024 - 12 - 16 - LABEL_BYTES - 10];
	char signature[10];
};
_Static_assert(sizeof(struct swap_header) == PAGE_BYTES, "swap header");

/* Told from those of other platforms on the machine by the name of our control group. */
static void write_label(char *label)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	for (const char *at = launcher.cgroup_name; *at; at++)
		hash = (hash ^ (uint8_t)*at) * UINT64_C(1099511628211);
	char text[LABEL_BYTES + 1];
	snprintf(text, sizeof text, "dsec-%011llx", (unsigned long long)(hash & UINT64_C(0xfffffffffff)));
	memcpy(label, text, LABEL_BYTES);
}

struct device_path {
	char text[64];
};

static const char *device(struct device_path *path, int number)
{
	snprintf(path->text, sizeof path->text, "/dev/zram%d", number);
	return path->text;
}

static const char *attribute(struct device_path *path, int number, const char *name)
{
	snprintf(path->text, sizeof path->text, "/sys/block/zram%d/%s", number, name);
	return path->text;
}

static uint64_t read_attribute(int number, const char *name)
{
	struct device_path path;
	char text[64];
	return read_text(AT_FDCWD, attribute(&path, number, name), text, sizeof text) > 0 ? strtoull(text, NULL, 10) : 0;
}

static int set_attribute(int number, const char *name, const char *value)
{
	struct device_path path;
	return write_control(AT_FDCWD, attribute(&path, number, name), value);
}

static int read_header(int number, struct swap_header *header)
{
	struct device_path path;
	int fd = open(device(&path, number), O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : pread(fd, header, sizeof *header, 0);
	close_fd(&fd);
	return got == (ssize_t)sizeof *header ? 0 : -1;
}

static bool is_ours(int number)
{
	struct swap_header header;
	char label[LABEL_BYTES];
	write_label(label);
	return read_attribute(number, "initstate") == 1 && read_header(number, &header) == 0 && memcmp(header.signature, SIGNATURE, sizeof header.signature) == 0 &&
	       memcmp(header.label, label, LABEL_BYTES) == 0;
}

static int remembered(void)
{
	char text[16];
	return read_text(launcher.run_fd, NUMBER_FILE, text, sizeof text) > 0 ? atoi(text) : NO_DEVICE;
}

static int find_ours(void)
{
	struct device_path path;
	int number = remembered();
	if (number != NO_DEVICE && is_ours(number))
		return number;
	for (number = 0; number < SWAP_DEVICES_MAX; number++)
		if (access(attribute(&path, number, "initstate"), F_OK) == 0 && is_ours(number))
			return number;
	return NO_DEVICE;
}

/* By the last part of its path: the rest is as the mount namespace of whoever turned it on saw it, which may be gone. */
static bool is_on(int number)
{
	char line[512], wanted[64];
	FILE *swaps = fopen("/proc/swaps", "re");
	bool found = false;
	snprintf(wanted, sizeof wanted, "/zram%d ", number);
	while (swaps && !found && fgets(line, sizeof line, swaps))
		found = strstr(line, wanted) != NULL;
	if (swaps)
		fclose(swaps);
	return found;
}

/* A device that a launcher took and did not finish: nothing has been written to it. */
static bool is_unfinished(int number)
{
	static const struct swap_header EMPTY;
	struct swap_header header;
	struct device_path path;
	if (access(attribute(&path, number, "initstate"), F_OK) < 0 || is_on(number))
		return false;
	return read_attribute(number, "initstate") == 0 || (read_header(number, &header) == 0 && memcmp(&header, &EMPTY, sizeof header) == 0);
}

/* Reading the file makes a device. */
static int take_device(void)
{
	char text[16];
	int number = remembered();
	if (number != NO_DEVICE && is_unfinished(number) && set_attribute(number, "reset", "1") == 0)
		return number;
	if (read_text(AT_FDCWD, "/sys/class/zram-control/hot_add", text, sizeof text) <= 0)
		return NO_DEVICE;
	number = atoi(text);
	return replace_file(launcher.run_fd, NUMBER_FILE, text, strlen(text)) < 0 ? NO_DEVICE : number;
}

static int write_header(int number, uint64_t bytes)
{
	struct device_path path;
	struct swap_header header = {.version = 1, .last_page = (uint32_t)(bytes / PAGE_BYTES - 1)};
	write_label(header.label);
	memcpy(header.signature, SIGNATURE, sizeof header.signature);
	int fd = open(device(&path, number), O_WRONLY | O_CLOEXEC);
	ssize_t written = fd < 0 ? -1 : pwrite(fd, &header, sizeof header, 0);
	int result = written == (ssize_t)sizeof header && fsync(fd) == 0 ? 0 : -1;
	close_fd(&fd);
	return result;
}

static int make(uint64_t mib, struct fault *fault)
{
	char size[32];
	int number = take_device();
	if (number == NO_DEVICE)
		return fault_errno(fault, "make zram device");
	set_attribute(number, "comp_algorithm", "lz4"); /* the quickest of those that kernels have; where it is not, the kernel's own choice */
	snprintf(size, sizeof size, "%llu", (unsigned long long)mib << 20);
	if (set_attribute(number, "disksize", size) < 0 || write_header(number, mib << 20) < 0)
		return fault_errno(fault, "set zram device up");
	return number;
}

static void turn_on(const struct job_order *order, struct job_outcome *outcome)
{
	struct device_path path;
	int number = find_ours();
	if (number == NO_DEVICE)
		number = make(order->argument, &outcome->fault);
	if (number < 0) {
		outcome->failed = true;
		return;
	}
	if (!is_on(number) && swapon(device(&path, number), SWAP_FLAG_PREFER | (PRIORITY & SWAP_FLAG_PRIO_MASK)) < 0 && errno != EBUSY) {
		outcome->failed = fault_errno(&outcome->fault, "swapon") < 0;
		return;
	}
	char text[16];
	int length = snprintf(text, sizeof text, "%d\n", number);
	replace_file(launcher.run_fd, NUMBER_FILE, text, (size_t)length);
	snprintf(outcome->text, sizeof outcome->text, "zram%d", number);
	outcome->numbers[0] = read_attribute(number, "disksize");
}

static void turn_off(const struct job_order *order, struct job_outcome *outcome)
{
	struct device_path path;
	char text[16];
	int number = find_ours();
	(void)order;
	if (number == NO_DEVICE) {
		number = remembered();
		if (number == NO_DEVICE || !is_unfinished(number))
			return;
	} else if (is_on(number) && swapoff(device(&path, number)) < 0 && errno != EINVAL) {
		outcome->failed = fault_errno(&outcome->fault, "swapoff") < 0;
		return;
	}
	snprintf(text, sizeof text, "%d", number);
	if (set_attribute(number, "reset", "1") < 0 || write_control(AT_FDCWD, "/sys/class/zram-control/hot_remove", text) < 0) {
		outcome->failed = fault_errno(&outcome->fault, "remove zram device") < 0;
		return;
	}
	unlinkat(launcher.run_fd, NUMBER_FILE, 0);
	snprintf(outcome->text, sizeof outcome->text, "zram%d", number);
}

static void answer(const struct job_order *order, const struct job_outcome *outcome)
{
	struct body body = {0};
	if (outcome->failed) {
		answer_fault(&order->ticket, &outcome->fault);
		return;
	}
	body_add(&body, "device", "%s", outcome->text);
	body_add(&body, "bytes", "%llu", (unsigned long long)outcome->numbers[0]);
	answer_ok(&order->ticket, &body);
}

static void submit(const struct request *request, struct job_order *order)
{
	struct fault fault;
	order->ticket = request->ticket;
	order->answer = answer;
	order->timeout_seconds = SWAP_TIMEOUT_SECONDS;
	if (job_submit(order, &fault) < 0)
		answer_fault(&request->ticket, &fault);
}

void swap_on_request(const struct request *request)
{
	struct fault fault;
	struct job_order order = {.work = turn_on};
	if (kv_get_u64(request->body, request->length, "sizeMiB", 1, SWAP_MIB_MAX, &order.argument) == 0) {
		submit(request, &order);
		return;
	}
	fault_set(&fault, CODE_INVALID, "parse request", EINVAL, "field sizeMiB is missing or out of range");
	answer_fault(&request->ticket, &fault);
}

void swap_off_request(const struct request *request)
{
	struct job_order order = {.work = turn_off};
	submit(request, &order);
}

int swap_read_usage(struct swap_usage *usage)
{
	struct device_path path;
	char text[256];
	int number = remembered();
	if (number == NO_DEVICE || read_text(AT_FDCWD, attribute(&path, number, "mm_stat"), text, sizeof text) <= 0)
		return -1;
	unsigned long long stored, compressed, taken;
	if (sscanf(text, "%llu %llu %llu", &stored, &compressed, &taken) != 3)
		return -1;
	*usage = (struct swap_usage){stored, taken};
	return 0;
}
