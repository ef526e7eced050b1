/**
 * The system calls that the probes need and Node has no function for, through koffi. Every descriptor made here is closed by its
 * maker; mounts are detached ones, which end with their descriptor, so nothing is ever attached to the machine's tree.
 */
import { closeSync } from 'node:fs';
import { arch } from 'node:process';
import koffi from 'koffi';

const libc = koffi.load('libc.so.6');

/** Numbers from 424 on are the same on every architecture. */
const NUMBERS = {
  bpf: arch === 'x64' ? 321 : 280,
  userfaultfd: arch === 'x64' ? 323 : 282,
  openTree: 428,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  pidfdOpen: 434,
  clone3: 435,
  closeRange: 436,
  mountSetattr: 442,
  landlockCreateRuleset: 444,
} as const;

const syscallOf = (parameters: string) => libc.func(`long syscall(long number, ${parameters})`) as (...values: unknown[]) => number;
const withLongs = syscallOf('long a, long b, long c, long d');
const withBuffer = syscallOf('long a, void *b, long c');
const withBufferFirst = syscallOf('void *a, long b, long c');
const fsopenCall = syscallOf('const char *name, long flags');
const fsconfigCall = syscallOf('long fd, long command, const char *key, const char *value, long aux');
const openTreeCall = syscallOf('long fd, const char *path, long flags');
const mountSetattrCall = syscallOf('long fd, const char *path, long flags, void *attributes, long size');

export const ioctl = libc.func('int ioctl(int fd, unsigned long request, unsigned long argument)') as (fd: number, request: number, argument: number) => number;
export const prctl = libc.func('int prctl(int option, long a, long b, long c, void *d)') as (
  option: number,
  a: number,
  b: number,
  c: number,
  d: Buffer,
) => number;
export const setxattr = libc.func('int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)') as (
  path: string,
  name: string,
  value: Buffer,
  size: number,
  flags: number,
) => number;

const socketCall = libc.func('int socket(int domain, int type, int protocol)') as (domain: number, type: number, protocol: number) => number;
const sendCall = libc.func('long send(int fd, const void *data, size_t size, int flags)') as (fd: number, data: Buffer, size: number, flags: number) => number;
const recvCall = libc.func('long recv(int fd, void *data, size_t size, int flags)') as (fd: number, data: Buffer, size: number, flags: number) => number;

const NAMES = new Map(Object.entries(koffi.os.errno).map(([name, number]) => [number, name]));

export class SyscallError extends Error {
  readonly errno: string;
  constructor(call: string, errno: string) {
    super(`${call}: ${errno}`);
    this.errno = errno;
  }
}

/** The result of a call, or a SyscallError that names the call and errno. */
export const checked = (call: string, result: number): number => {
  if (result >= 0) return result;
  const errno = koffi.errno();
  throw new SyscallError(call, NAMES.get(errno) ?? String(errno));
};

/** The name of the error that a call answers; undefined when it succeeded. */
export const errnoOf = (attempt: () => unknown): string | undefined => {
  try {
    attempt();
    return undefined;
  } catch (error) {
    if (error instanceof SyscallError) return error.errno;
    throw error;
  }
};

/** Uses a descriptor and closes it, whatever happens. */
export const withFd = <T>(fd: number, use: (fd: number) => T): T => {
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
};

export const pidfdOpen = (pid: number): number => checked('pidfd_open', withLongs(NUMBERS.pidfdOpen, pid, 0, 0, 0));
export const closeNoRange = (): number => checked('close_range', withLongs(NUMBERS.closeRange, 0x7fff_0000, 0x7fff_0001, 0, 0));
export const userfaultfd = (flags: number): number => checked('userfaultfd', withLongs(NUMBERS.userfaultfd, flags, 0, 0, 0));
export const landlockVersion = (): number => checked('landlock_create_ruleset', withLongs(NUMBERS.landlockCreateRuleset, 0, 0, 1, 0));
/** With a NULL argument the call is refused before anything happens; ENOSYS tells that it does not exist. */
export const emptyClone3 = (): number => checked('clone3', withBufferFirst(NUMBERS.clone3, null, 0, 0));
export const bpf = (command: number, attributes: Buffer): number => checked('bpf', withBuffer(NUMBERS.bpf, command, attributes, attributes.length));

const FSCONFIG = { flag: 0, string: 1, create: 6 } as const;

/** Mounts a file system without attaching it; the answer is the mount's descriptor. `true` sets a flag. */
export const mountDetached = (type: string, options: Readonly<Record<string, string | true>>): number =>
  withFd(checked(`fsopen ${type}`, fsopenCall(NUMBERS.fsopen, type, 1)), (context) => {
    for (const [key, value] of Object.entries(options)) {
      const result =
        value === true
          ? fsconfigCall(NUMBERS.fsconfig, context, FSCONFIG.flag, key, null, 0)
          : fsconfigCall(NUMBERS.fsconfig, context, FSCONFIG.string, key, value, 0);
      checked(`fsconfig ${key}`, result);
    }
    checked(`mount ${type}`, fsconfigCall(NUMBERS.fsconfig, context, FSCONFIG.create, null, null, 0));
    return checked('fsmount', withLongs(NUMBERS.fsmount, context, 1, 0, 0));
  });

const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;
const OPEN_TREE_CLONE = 1;
const MOUNT_ATTR_IDMAP = 0x0010_0000;

export const cloneTree = (path: string): number => checked('open_tree', openTreeCall(NUMBERS.openTree, AT_FDCWD, path, OPEN_TREE_CLONE));

/** Maps the ids of a detached mount as the user namespace of `usernsFd` does. */
export const idmap = (mountFd: number, usernsFd: number): void => {
  const attributes = Buffer.alloc(32); // struct mount_attr: attr_set, attr_clr, propagation, userns_fd
  attributes.writeBigUInt64LE(BigInt(MOUNT_ATTR_IDMAP), 0);
  attributes.writeBigUInt64LE(BigInt(usernsFd), 24);
  checked('mount_setattr', mountSetattrCall(NUMBERS.mountSetattr, mountFd, '', AT_EMPTY_PATH, attributes, attributes.length));
};

/** Address of a buffer's bytes, for structures that hold pointers. The caller keeps the buffer alive during the call. */
export const addressOf = (buffer: Buffer): bigint => koffi.address(buffer);

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const MSG_DONTWAIT = 0x40;

/** Sends one request to a netlink family, which answers before `send` returns; the answer's bytes. */
export const askNetlink = (family: number, request: Buffer): Buffer =>
  withFd(checked('socket', socketCall(AF_NETLINK, SOCK_RAW, family)), (fd) => {
    checked('send', sendCall(fd, request, request.length, 0));
    const answer = Buffer.alloc(8_192);
    return answer.subarray(0, checked('recv', recvCall(fd, answer, answer.length, MSG_DONTWAIT)));
  });
