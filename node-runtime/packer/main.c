/*
 * dsec-pack: makes an image of what one sandbox has written. @paper §6.1
 *
 *   dsec-pack --upper DIR | --disk IMAGE  --first-id N --image OUT --data OUT --uuid HEX32
 *             [--earlier TAG:PATH]… [--rule PATTERN]… [--share] [--merged DIR]
 *
 * `--merged`: the tree as the sandbox sees it; without it hard links that reach into layers below are not completed (links.h).
 *
 * It says `ready` and waits for a line; meanwhile whoever started it brings the sandbox to rest. It reads everything and says
 * `taken`; the sandbox may go on. Then it writes the image, and says `done` with the digests of both files. What else it says: report.h.
 *
 * Does not freeze, store or name anything. A killed packer leaves two files and nothing else.
 */
#include "data.h"
#include "image.h"
#include "limits.h"
#include "links.h"
#include "report.h"
#include "scrub.h"
#include "source.h"
#include "tree.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>

struct order {
	const char *upper, *disk, *merged, *image, *data;
	uint32_t first_id;
	uint8_t uuid[16];
};

static _Noreturn void usage(const char *what)
{
	fprintf(stderr, "dsec-pack: %s\nusage: dsec-pack --upper DIR|--disk IMAGE --first-id N --image OUT --data OUT --uuid HEX32 [--earlier TAG:PATH]... [--rule PATTERN]... [--share] [--merged DIR]\n", what);
	exit(EXIT_USAGE);
}

static void parse_uuid(const char *text, uint8_t uuid[16])
{
	if (strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32)
		usage("--uuid is not 32 hexadecimal digits");
	for (int i = 0; i < 16; i++)
		sscanf(text + 2 * i, "%2hhx", &uuid[i]);
}

static void add_earlier(const char *text)
{
	char tag[65] = "";
	if (strcspn(text, ":") != 64)
		usage("--earlier is not TAG:PATH");
	memcpy(tag, text, 64);
	data_add_earlier(text + 65, tag);
}

static struct order parse(int count, char **words)
{
	static const struct option OPTIONS[] = {
		{"upper", required_argument, NULL, 'u'}, {"disk", required_argument, NULL, 'd'}, {"first-id", required_argument, NULL, 'f'},
		{"image", required_argument, NULL, 'i'}, {"data", required_argument, NULL, 'b'}, {"uuid", required_argument, NULL, 'U'},
		{"earlier", required_argument, NULL, 'e'}, {"rule", required_argument, NULL, 'r'}, {"share", no_argument, NULL, 's'}, {"merged", required_argument, NULL, 'm'}, {0},
	};
	struct order order = {0};
	for (int option; (option = getopt_long(count, words, "", OPTIONS, NULL)) >= 0;)
		switch (option) {
		case 'u': order.upper = optarg; break;
		case 'd': order.disk = optarg; break;
		case 'f': order.first_id = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'i': order.image = optarg; break;
		case 'b': order.data = optarg; break;
		case 'U': parse_uuid(optarg, order.uuid); break;
		case 'e': add_earlier(optarg); break;
		case 's': data_may_clone(); break;
		case 'm': order.merged = optarg; break;
		case 'r':
			if (!scrub_add(optarg))
				usage("--rule: not a path below /, or too many");
			break;
		default: usage("unknown option");
		}
	if (optind != count || (order.upper == NULL) == (order.disk == NULL) || !order.image || !order.data || !order.first_id)
		usage("something is missing or too much");
	return order;
}

static void wait_for_word(void)
{
	char line[8];
	if (!fgets(line, sizeof line, stdin))
		exit(EXIT_FAILED); /* whoever asked is gone */
}

/* A directory holds one descriptor for each level above it. */
static void raise_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int count, char **words)
{
	char image[65];
	struct tree_counts tree = {0};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	raise_descriptors();
	struct order order = parse(count, words);
	data_create(order.data);
	struct source source = order.upper ? source_open_directory(order.upper) : source_open_disk(order.disk);
	say("ready");
	wait_for_word();
	if (order.merged && source.work >= 0)
		links_complete(source.work, order.merged);
	struct inode *root = tree_read(source.upper, order.first_id, &tree);
	struct data_counts data = data_finish();
	say("taken files=%llu bytes=%llu stored=%llu shared=%llu cloned=%llu removed=%llu", (unsigned long long)tree.files, (unsigned long long)tree.bytes,
	    (unsigned long long)data.stored_bytes, (unsigned long long)data.shared_bytes, (unsigned long long)data.cloned_bytes, (unsigned long long)tree.removed);
	data_name_new();
	image_write(order.image, root, order.uuid, image);
	say("done %s %s", data_name() ? data_name() : "-", image);
	return 0;
}
