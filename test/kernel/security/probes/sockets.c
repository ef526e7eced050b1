/*
 * Sockets, terminals, memory between processes: ways to somebody else.
 *
 *   sockets families            which kinds of socket there are
 *   sockets reach NAME PORT     an abstract name, a port of lo, a shared memory key, a queue: each made by `offer` elsewhere
 *   sockets listen NAME PORT    makes the first two, says so and waits
 *   sockets offer NAME PORT     makes them all
 *   sockets terminal            typing into terminals
 */
#include "attempt.h"

#include <linux/filter.h>
#include <linux/netlink.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { KEY = 0x5ec07e57 };

static const char *name;
static unsigned short port;

#define SOCKET(function, family, type, protocol) \
	static long function(void) { return socket(family, type, protocol); }
SOCKET(stream, AF_INET, SOCK_STREAM, 0)
SOCKET(stream6, AF_INET6, SOCK_STREAM, 0)
SOCKET(local, AF_UNIX, SOCK_STREAM, 0)
SOCKET(packet, AF_PACKET, SOCK_RAW, 0x0300)
SOCKET(packet_datagram, AF_PACKET, SOCK_DGRAM, 0x0300)
SOCKET(raw, AF_INET, SOCK_RAW, IPPROTO_ICMP)
SOCKET(raw_any, AF_INET, SOCK_RAW, IPPROTO_RAW)
SOCKET(raw6, AF_INET6, SOCK_RAW, IPPROTO_ICMPV6)
SOCKET(express_data, 44 /* AF_XDP */, SOCK_RAW, 0)
SOCKET(hypervisor, 40 /* AF_VSOCK */, SOCK_STREAM, 0)
SOCKET(algorithm, 38 /* AF_ALG */, SOCK_SEQPACKET, 0)
SOCKET(keys, 15 /* AF_KEY */, SOCK_RAW, 2)
SOCKET(controller_area, 29 /* AF_CAN */, SOCK_RAW, 1)
SOCKET(netlink_route, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)

/* What needs the right: a rule of the firewall, a route, a filter. Asked by the least that is refused without it. */
static long netlink_change(int protocol, unsigned short type)
{
	struct {
		struct nlmsghdr header;
		char body[64];
	} request = {.header = {.nlmsg_len = sizeof request, .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK}};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[256];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW, protocol);
	if (fd < 0 || send(fd, &request, sizeof request, 0) < 0)
		return -1;
	if (recv(fd, &answer, sizeof answer, 0) < (ssize_t)(sizeof answer.header + sizeof answer.error))
		return attempt_failed(EPROTO);
	if (answer.error.error == -EPERM || answer.error.error == -EACCES)
		return attempt_failed(-answer.error.error);
	snprintf(attempt_detail, sizeof attempt_detail, "reached %s", strerrorname_np(-answer.error.error));
	return 0;
}
static long add_link(void) { return netlink_change(NETLINK_ROUTE, 16 /* RTM_NEWLINK */); }
static long add_route(void) { return netlink_change(NETLINK_ROUTE, 24 /* RTM_NEWROUTE */); }
static long add_rules(void) { return netlink_change(NETLINK_NETFILTER, 10 << 8 /* NFT_MSG_NEWTABLE */); }
static long forge_packets(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
	return setsockopt(fd, IPPROTO_IP, 19 /* IP_TRANSPARENT */, &on, sizeof on);
}

/* The kernel compiles filters to machine code, of which there is one bounded amount for the whole host. */
static long attach_filter(int option)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = {1, &code};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
	return setsockopt(fd, SOL_SOCKET, option, &program, sizeof program);
}
static long packet_filter(void) { return attach_filter(SO_ATTACH_FILTER); }
static long port_filter(void) { return attach_filter(SO_ATTACH_REUSEPORT_CBPF); }

static const struct attempt FAMILIES[] = {
	{"tcp", stream}, {"tcp6", stream6}, {"unix", local}, {"netlink route", netlink_route}, {"packet raw", packet}, {"packet datagram", packet_datagram},
	{"icmp raw", raw}, {"ip raw", raw_any}, {"icmp6 raw", raw6}, {"xdp", express_data}, {"vsock", hypervisor}, {"alg", algorithm}, {"key", keys},
	{"can", controller_area}, {"add link", add_link}, {"add route", add_route}, {"add firewall table", add_rules}, {"transparent source", forge_packets},
	{"packet filter", packet_filter}, {"port filter", port_filter},
};

static socklen_t abstract(struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static struct sockaddr_in on_lo(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static const char *queue_name(void)
{
	static char text[64];
	snprintf(text, sizeof text, "/%s", name);
	return text;
}

static long reach_abstract(void)
{
	struct sockaddr_un address;
	socklen_t length = abstract(&address);
	return connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, length);
}
static long reach_port(void)
{
	struct sockaddr_in address = on_lo();
	return connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address);
}
static long reach_memory(void) { return shmget(KEY, 0, 0); }
static long reach_queue(void) { return mq_open(queue_name(), O_RDONLY); }
static long reach_file(void)
{
	char text[64];
	snprintf(text, sizeof text, "/dev/shm/%s", name);
	return open(text, O_RDONLY);
}

static const struct attempt REACH[] = {
	{"abstract socket", reach_abstract}, {"port of lo", reach_port}, {"shared memory", reach_memory}, {"message queue", reach_queue}, {"/dev/shm", reach_file},
};

static long listen_on_both(void)
{
	struct sockaddr_un address;
	socklen_t length = abstract(&address);
	struct sockaddr_in lo = on_lo();
	int one = socket(AF_UNIX, SOCK_STREAM, 0), two = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(one, (struct sockaddr *)&address, length) < 0 || listen(one, 8) < 0)
		return -1;
	return bind(two, (struct sockaddr *)&lo, sizeof lo) < 0 ? -1 : listen(two, 8);
}

static long make_memory(void)
{
	char text[64];
	snprintf(text, sizeof text, "/dev/shm/%s", name);
	if (shmget(KEY, 4096, IPC_CREAT | 0666) < 0 || mq_open(queue_name(), O_RDWR | O_CREAT, 0666, NULL) < 0)
		return -1;
	return open(text, O_CREAT | O_RDWR, 0666);
}

static void offer(bool memory)
{
	bool failed = listen_on_both() < 0 || (memory && make_memory() < 0);
	printf("offer\t%s\n", failed ? strerrorname_np(errno) : "ok");
	fflush(stdout);
	while (!failed)
		pause();
}

static int open_terminal(int *slave)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlocked = 0;
	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return -1;
	*slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	return *slave < 0 ? -1 : master;
}
static long type_into_own(void)
{
	int slave;
	if (setsid() < 0 || open_terminal(&slave) < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
		return -1;
	return ioctl(slave, TIOCSTI, "x");
}
static long type_into_other(void)
{
	int slave;
	return setsid() < 0 || open_terminal(&slave) < 0 ? -1 : ioctl(slave, TIOCSTI, "x");
}
static long steal_terminal(void)
{
	int slave, master = setsid() < 0 ? -1 : open_terminal(&slave);
	if (master < 0)
		return -1;
	pid_t owner = fork();
	if (owner == 0) {
		setsid();
		ioctl(slave, TIOCSCTTY, 0);
		for (;;)
			pause();
	}
	for (pid_t session = 0; ioctl(master, TIOCGSID, &session) < 0 || session != owner;)
		usleep(1000);
	long result = ioctl(slave, TIOCSCTTY, 1);
	int error = errno;
	kill(owner, SIGKILL);
	return result < 0 ? attempt_failed(error) : result;
}

static const struct attempt TERMINALS[] = {
	{"type into own", type_into_own}, {"type into other", type_into_other}, {"steal", steal_terminal},
};

int main(int argc, char **argv)
{
	if (argc > 3) {
		name = argv[2];
		port = (unsigned short)atoi(argv[3]);
	}
	if (argc > 3 && (strcmp(argv[1], "offer") == 0 || strcmp(argv[1], "listen") == 0))
		offer(strcmp(argv[1], "offer") == 0);
	else if (argc > 3 && strcmp(argv[1], "reach") == 0)
		attempt_all(REACH, ATTEMPTS(REACH));
	else if (argc == 2 && strcmp(argv[1], "families") == 0)
		attempt_all(FAMILIES, ATTEMPTS(FAMILIES));
	else if (argc == 2 && strcmp(argv[1], "terminal") == 0)
		attempt_all(TERMINALS, ATTEMPTS(TERMINALS));
	else
		return 2;
	return 0;
}
