/** File systems: everything is mounted detached, in scratch files, and ends with its descriptor. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync, mkdirSync, openSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { absent, type Check, limited, type ProbeContext, type ProbeResult, present, presentIf } from '../finding.ts';
import { firstLine, knowsFilesystem, run } from '../helpers.ts';
import { checked, cloneTree, errnoOf, idmap, ioctl, mountDetached, setxattr, withFd } from '../syscalls.ts';

const FICLONE = 0x4004_9409;
const directory = (path: string): string => {
  mkdirSync(path, { recursive: true });
  return path;
};

/** A one-file EROFS image in the scratch directory. */
const makeImage = async ({ scratch }: ProbeContext): Promise<string> => {
  const image = join(scratch, 'probe.erofs');
  if (existsSync(image)) return image;
  writeFileSync(join(directory(join(scratch, 'image')), 'file'), 'x');
  const { ok, output } = await run('mkfs.erofs', '--quiet', image, join(scratch, 'image'));
  if (!ok) throw new Error(`no image to try with: ${output}`);
  return image;
};

const probeErofs = async (context: ProbeContext): Promise<ProbeResult> => {
  if (!knowsFilesystem('erofs')) return absent('not in /proc/filesystems');
  const image = await makeImage(context);
  const errno = errnoOf(() => withFd(mountDetached('erofs', { source: image, ro: true }), () => {}));
  if (errno === undefined) return present('mounts image files directly');
  return canLoop() ? limited(`image files need a loop device (${errno})`) : absent(`no file-backed mount (${errno}) and no loop devices`);
};

const canLoop = (): boolean => {
  try {
    accessSync('/dev/loop-control', constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
};

const overlayOptions = (scratch: string) => ({
  source: 'overlay',
  lowerdir: directory(join(scratch, 'lower')),
  upperdir: directory(join(scratch, 'upper')),
  workdir: directory(join(scratch, 'work')),
});

/** A user namespace with one mapping, held open by a child for as long as `use` runs. */
const withUserNamespace = async <T>(use: (usernsFd: number) => T): Promise<T> => {
  const child = spawn('unshare', ['--user', '--map-root-user', 'sh', '-c', 'echo ready; read _'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = once(child, 'close');
  try {
    await Promise.race([once(child.stdout, 'data'), ended]);
    return withFd(openSync(`/proc/${child.pid}/ns/user`, 'r'), use);
  } finally {
    child.stdin.end('\n');
    await ended;
  }
};

const SPARSE_BYTES = 64 * 2 ** 20;

/** Makes a small disk, mounts it in a namespace that ends with the probe, and writes until the kernel says that it is full. */
const probeDiskLimit = async ({ scratch }: ProbeContext): Promise<ProbeResult> => {
  const image = join(scratch, 'disk.ext4');
  const made = await run('mkfs.ext4', '-q', '-F', '-O', '^has_journal', image, '16M');
  if (!made.ok) return absent(`mkfs.ext4 (package e2fsprogs): ${firstLine(made.output)}`);
  const script = 'mount -o loop,nobarrier "$1" "$2" && dd if=/dev/zero of="$2/fill" bs=1M count=32';
  const { ok, output } = await run('unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'probe', image, directory(join(scratch, 'disk')));
  if (!ok && /No space left on device/.test(output)) return present('ext4 images on loop devices');
  return absent(ok ? 'writing beyond the limit was not refused' : firstLine(output));
};

export const LAYER_CHECKS: readonly Check[] = [
  {
    name: 'EROFS',
    group: 'layers',
    required: true,
    usedFor: 'read-only layers: base, workspaces, toolkits',
    cost: 'no layer can be mounted',
    fallback: 'loop devices where the kernel cannot mount a file directly (before 6.12)',
    probe: probeErofs,
  },
  {
    name: 'overlay by the new mount API',
    group: 'layers',
    required: true,
    usedFor: 'a sandbox’s root: its layers and its writable upper',
    cost: 'no sandbox can be created',
    fallback: null,
    probe: ({ scratch }) => withFd(mountDetached('overlay', overlayOptions(scratch)), () => present()),
  },
  {
    name: 'trusted extended attributes',
    group: 'layers',
    required: true,
    usedFor: 'deletions and opaque directories in the writable layer',
    cost: 'deleted files come back',
    fallback: null,
    probe: ({ scratch }) => {
      const value = Buffer.from('y');
      checked('setxattr', setxattr(directory(join(scratch, 'attributes')), 'trusted.dsec', value, value.length, 0));
      return present();
    },
  },
  {
    name: 'idmapped EROFS layers',
    group: 'layers',
    required: true,
    usedFor: 'one mounted layer shared by sandboxes with different ids',
    cost: 'files of layers belong to nobody inside',
    fallback: null,
    probe: async (context) => {
      const image = await makeImage(context);
      const errno = await withUserNamespace((userns) =>
        errnoOf(() => withFd(mountDetached('erofs', { source: image, ro: true }), (mount) => idmap(mount, userns))),
      );
      if (errno === undefined) return present();
      return errno === 'ENOTBLK' ? limited('not tried: the kernel cannot mount an image file directly') : absent(errno);
    },
  },
  {
    name: 'idmapped bind mounts',
    group: 'layers',
    required: false,
    usedFor: 'mounting directories of the host with other ids',
    cost: 'nothing: snapshots rewrite ids while they are packed',
    fallback: 'ids are rewritten while packing',
    probe: ({ scratch }) =>
      withUserNamespace((userns) => {
        const errno = errnoOf(() => withFd(cloneTree(directory(join(scratch, 'bind'))), (mount) => idmap(mount, userns)));
        return presentIf(errno === undefined, errno ?? '');
      }),
  },
  {
    name: 'loop devices',
    group: 'layers',
    required: false,
    usedFor: 'EROFS on kernels before 6.12',
    cost: 'those kernels cannot mount layers',
    fallback: 'file-backed mounts',
    probe: () => presentIf(canLoop()),
  },
  {
    name: 'reflinks',
    group: 'layers',
    required: false,
    usedFor: 'forks: large files share their blocks with those of the origin (XFS, btrfs)',
    cost: 'a sandbox that is forked stands still while what it wrote is read: about 0.3 s for 500 MB, which are stored once more',
    fallback: 'the writable layer is read once for all forks of one call',
    probe: ({ scratch }) => {
      writeFileSync(join(scratch, 'from'), Buffer.alloc(4_096, 1));
      const errno = withFd(openSync(join(scratch, 'from'), 'r'), (from) =>
        withFd(openSync(join(scratch, 'to'), 'w'), (to) => errnoOf(() => checked('FICLONE', ioctl(to, FICLONE, from)))),
      );
      return presentIf(errno === undefined, errno ?? '');
    },
  },
  {
    name: 'disk limits',
    group: 'layers',
    required: false,
    usedFor: 'a limit on what each sandbox may write: an ext4 image of its own',
    cost: 'creates with a disk limit fail; one sandbox can fill the disk for its neighbours',
    fallback: 'a node with little free space takes no more sandboxes',
    probe: probeDiskLimit,
  },
  {
    name: 'sparse files',
    group: 'layers',
    required: false,
    usedFor: 'disks of sandboxes that take only what is written',
    cost: 'every sandbox with a disk limit takes all of it at once',
    fallback: null,
    probe: ({ scratch }) => {
      const file = join(scratch, 'sparse');
      writeFileSync(file, '');
      truncateSync(file, SPARSE_BYTES);
      return statSync(file).blocks * 512 < SPARSE_BYTES ? present() : absent('the data directory’s file system fills holes');
    },
  },
];
