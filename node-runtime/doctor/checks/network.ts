import { absent, type Check, present, presentIf } from '../finding.ts';
import { cgroupMounts, run } from '../helpers.ts';
import { addressOf, askNetlink, bpf, errnoOf, withFd } from '../syscalls.ts';

const BPF_PROG_LOAD = 5;
const BPF_PROG_TYPE_CGROUP_SKB = 8;
const BPF_CGROUP_INET_EGRESS = 1;

/** The smallest program: `r0 = 1; exit`. Loaded, never attached. */
const loadAllowAll = (): number => {
  const instructions = Buffer.from([0xb7, 0, 0, 0, 1, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0]);
  const license = Buffer.from('Apache-2.0\0');
  const attributes = Buffer.alloc(72);
  attributes.writeUInt32LE(BPF_PROG_TYPE_CGROUP_SKB, 0);
  attributes.writeUInt32LE(instructions.length / 8, 4);
  attributes.writeBigUInt64LE(addressOf(instructions), 8);
  attributes.writeBigUInt64LE(addressOf(license), 16);
  attributes.writeUInt32LE(BPF_CGROUP_INET_EGRESS, 68);
  return bpf(BPF_PROG_LOAD, attributes);
};

const NETLINK_NETFILTER = 12;
const NFT_GET_GENERATION = (10 << 8) | 16;
const NLM_F_REQUEST = 1;
const NLMSG_ERROR = 2;

/** Asks nf_tables for the generation of its rules: the smallest question it answers. */
const nftablesAnswers = (): boolean => {
  const request = Buffer.alloc(20); // struct nlmsghdr and struct nfgenmsg
  request.writeUInt32LE(request.length, 0);
  request.writeUInt16LE(NFT_GET_GENERATION, 4);
  request.writeUInt16LE(NLM_F_REQUEST, 6);
  return askNetlink(NETLINK_NETFILTER, request).readUInt16LE(4) !== NLMSG_ERROR;
};

export const NETWORK_CHECKS: readonly Check[] = [
  {
    name: 'network of its own, loopback up',
    group: 'network',
    required: true,
    usedFor: 'a sandbox talks to itself and, by default, to nobody else',
    cost: 'no sandbox can be created',
    fallback: null,
    probe: async () => {
      const { ok, output } = await run('unshare', '--net', 'ip', 'link', 'set', 'lo', 'up');
      return presentIf(ok, ok ? '' : output);
    },
  },
  {
    name: 'veth pairs',
    group: 'network',
    required: false,
    usedFor: 'a sandbox’s way out when its rules allow one',
    cost: 'sandboxes have no network',
    fallback: 'default deny: loopback only',
    probe: async () => {
      const { ok, output } = await run('unshare', '--net', 'ip', 'link', 'add', 'dsec0', 'type', 'veth', 'peer', 'name', 'dsec1');
      return presentIf(ok, ok ? '' : output);
    },
  },
  {
    name: 'eBPF on control groups',
    group: 'network',
    required: false,
    usedFor: 'network rules per sandbox, changed while it runs',
    cost: 'network rules cannot be opened',
    fallback: 'default deny: loopback only',
    probe: () => {
      if (!cgroupMounts().v2) return absent('no v2 tree is mounted to attach to');
      const errno = errnoOf(() => withFd(loadAllowAll(), () => {}));
      return errno === undefined ? present() : absent(errno);
    },
  },
  {
    name: 'nf_tables',
    group: 'network',
    required: false,
    usedFor: 'the second wall, on the host side of the veth pair',
    cost: 'one wall fewer',
    fallback: 'eBPF on the control group alone',
    probe: () => presentIf(nftablesAnswers()),
  },
];
