/** Amounts that the kernel counts for the whole host, or for one id of it, and that many sandboxes together may use up. */
import { absent, type Check, limited, type ProbeResult, present, presentIf } from '../finding.ts';
import { hasCapability, numberIn, read } from '../helpers.ts';
import { DOCTOR_LIMITS } from '../limits.ts';

const CAP_SYS_RESOURCE = 24;

const enough = (amount: number | undefined, comfortable: number, detail = String(amount)): ProbeResult =>
  amount === undefined ? absent('this kernel does not say') : amount < comfortable ? limited(detail) : present(detail);

/** A number below /proc/sys. */
const amount = (
  name: string,
  file: string,
  comfortable: number,
  words: { readonly usedFor: string; readonly cost: string; readonly fallback: string },
): Check => ({
  name,
  group: 'limits',
  required: false,
  ...words,
  probe: () => enough(numberIn(`/proc/sys/${file}`), comfortable),
});

export const LIMIT_CHECKS: readonly Check[] = [
  {
    name: 'CAP_SYS_RESOURCE',
    group: 'limits',
    required: false,
    usedFor: 'raising hard limits, protecting the platform from the OOM killer',
    cost: 'the descriptor limit stays as it is; the kernel may pick a role when memory is short',
    fallback: 'admission counts descriptors; roles are started again',
    probe: () => presentIf(hasCapability(CAP_SYS_RESOURCE)),
  },
  {
    name: 'open files (hard)',
    group: 'limits',
    required: false,
    usedFor: 'sockets and logs of sandboxes, connections of the bus',
    cost: 'fewer sandboxes on this node',
    fallback: 'the Edge admits by descriptors',
    probe: () => {
      const hard = /^Max open files\s+\d+\s+(\d+)/m.exec(read('/proc/self/limits') ?? '')?.[1];
      return enough(Number(hard), DOCTOR_LIMITS.comfortableDescriptors);
    },
  },
  {
    name: 'pid_max',
    group: 'limits',
    required: false,
    usedFor: 'processes of all sandboxes together',
    cost: 'fewer processes on this node',
    fallback: 'the Edge admits by pids',
    probe: () => {
      const pids = Math.min(numberIn('/proc/sys/kernel/pid_max') ?? 0, numberIn('/proc/sys/kernel/threads-max') ?? 0);
      return enough(pids, DOCTOR_LIMITS.comfortablePids);
    },
  },
  {
    name: 'inotify',
    group: 'limits',
    required: false,
    usedFor: 'file watching inside sandboxes; counted per id, and each sandbox has its own',
    cost: 'development servers in sandboxes may fail to watch large trees',
    fallback: 'a sandbox exhausts its own count only; set fs.inotify.max_user_instances and max_user_watches',
    probe: () => {
      const instances = numberIn('/proc/sys/fs/inotify/max_user_instances');
      const watches = numberIn('/proc/sys/fs/inotify/max_user_watches');
      const detail = `${instances} instances, ${watches} watches`;
      const fewWatches = watches !== undefined && watches < DOCTOR_LIMITS.comfortableInotifyWatches;
      return fewWatches ? limited(detail) : enough(instances, DOCTOR_LIMITS.comfortableInotifyInstances, detail);
    },
  },
  amount('file-max', 'fs/file-max', DOCTOR_LIMITS.comfortableOpenFiles, {
    usedFor: 'open files of all processes of the host together, counted for nobody',
    cost: 'a sandbox with half a GiB of memory can use them up, and other sandboxes then open none',
    fallback: 'raise fs.file-max; systemd sets it out of reach',
  }),
  amount('pty.max', 'kernel/pty/max', DOCTOR_LIMITS.comfortableTerminals, {
    usedFor: 'terminals of all sandboxes together, at most 128 each; the kernel keeps 1,024 for the host',
    cost: 'when some sandboxes have many open, commands with a terminal do not start in others',
    fallback: 'raise kernel.pty.max',
  }),
  amount('bpf_jit_limit', 'net/core/bpf_jit_limit', DOCTOR_LIMITS.comfortableJitBytes, {
    usedFor: 'machine code of the system call filters of all processes together, in bytes',
    cost: 'processes that load many filters use it up, and commands of other sandboxes then do not start',
    fallback: 'raise net.core.bpf_jit_limit',
  }),
  amount('max_user_namespaces', 'user/max_user_namespaces', DOCTOR_LIMITS.comfortableNamespaces, {
    usedFor: 'one per sandbox, counted for the id of its own root',
    cost: 'with 0 none can be made, and no sandbox either',
    fallback: 'set user.max_user_namespaces',
  }),
  amount('mount-max', 'fs/mount-max', DOCTOR_LIMITS.comfortableMounts, {
    usedFor: 'mounts in one namespace: layers of the node in the launcher’s, some twenty in each sandbox’s',
    cost: 'fewer layers at a time',
    fallback: 'raise fs.mount-max',
  }),
];
