/**
 * The reference container: `crun run` of the same root file system, alone, with the namespaces that ours has.
 *
 * Runs in a private mount namespace without the bare v2 cgroup mount that confuses crun on hosts that mix v1 and v2.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const spec = (args: readonly string[]) => ({
  ociVersion: '1.0.0',
  process: {
    terminal: false,
    user: { uid: 0, gid: 0 },
    args,
    env: ['PATH=/usr/bin:/bin'],
    cwd: '/',
    capabilities: { bounding: [], effective: [], permitted: [] },
  },
  root: { path: 'rootfs', readonly: false },
  hostname: 'reference',
  mounts: [
    { destination: '/proc', type: 'proc', source: 'proc' },
    { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=65536k'] },
    { destination: '/dev/pts', type: 'devpts', source: 'devpts', options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'] },
    { destination: '/dev/shm', type: 'tmpfs', source: 'shm', options: ['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=65536k'] },
  ],
  linux: {
    namespaces: ['pid', 'ipc', 'uts', 'mount', 'network', 'user', 'cgroup'].map((type) => ({ type })),
    uidMappings: [{ containerID: 0, hostID: 100_000, size: 65_536 }],
    gidMappings: [{ containerID: 0, hostID: 100_000, size: 65_536 }],
    resources: { pids: { limit: 128 }, memory: { limit: 256 * 1024 * 1024 } },
  },
});

export interface Crun extends Disposable {
  /** `crun run` of /bin/true: create, start, wait, delete. Milliseconds. */
  run(): Promise<number>;
  /** create + start + one exec of /bin/true + delete. */
  cycle(): Promise<void>;
}

/** Answers undefined when crun is not installed. */
export const openCrun = (rootfs: string): Crun => {
  const dir = mkdtempSync(join(tmpdir(), 'dsec-crun-'));
  mkdirSync(join(dir, 'state'));
  for (const [name, args] of [
    ['run', ['/bin/true']],
    ['live', ['/bin/sleep', '600']],
  ] as const) {
    mkdirSync(join(dir, name), { recursive: true });
    cpSync(rootfs, join(dir, name, 'rootfs'), { recursive: true, verbatimSymlinks: true });
    execFileSync('chown', ['-R', '100000:100000', join(dir, name, 'rootfs')]);
    writeFileSync(join(dir, name, 'config.json'), JSON.stringify(spec(args)));
  }
  // One long-lived shell inside the private namespace takes the commands: what is measured is crun, not unshare.
  const shell = spawn('unshare', ['-m', 'sh', '-c', 'umount /sys/fs/cgroup/unified 2>/dev/null; exec sh'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ask = lineProtocol(shell);
  let next = 0;
  const crun = `crun --root ${dir}/state`;
  /** A second time when the first found the container's group still busy. */
  const removed = (id: string): string => `{ ${crun} delete -f ${id} || ${crun} delete -f ${id}; }`;
  return {
    run: async () => {
      const id = `r${next++}`;
      const startedAt = performance.now();
      await ask(`${crun} run -b ${dir}/run ${id} </dev/null >/dev/null`);
      return performance.now() - startedAt;
    },
    cycle: async () => {
      const id = `c${next++}`;
      await ask(
        `${crun} create -b ${dir}/live ${id} </dev/null >/dev/null && ${crun} start ${id} && ${crun} exec ${id} /bin/true </dev/null && ${removed(id)}`,
      );
    },
    [Symbol.dispose]: () => {
      shell.stdin?.end();
      // What a failed cycle left would outlive the benchmark.
      for (const id of readdirSync(join(dir, 'state'))) spawnSync('crun', ['--root', join(dir, 'state'), 'delete', '-f', id], { stdio: 'ignore' });
      rmSync(dir, { recursive: true, force: true });
    },
  };
};

/** Sends one command line at a time per call, each in a sub-shell; calls may overlap. Rejects on a non-zero exit. */
const lineProtocol = (shell: ChildProcess): ((command: string) => Promise<void>) => {
  const waiting = new Map<number, (status: number) => void>();
  let buffered = '';
  shell.stdout?.setEncoding('utf8').on('data', (text: string) => {
    buffered += text;
    const lines = buffered.split('\n');
    buffered = lines.pop() ?? '';
    for (const line of lines) {
      const match = /^done (\d+) (\d+)$/.exec(line);
      if (match) waiting.get(Number(match[1]))?.(Number(match[2]));
    }
  });
  let next = 0;
  return (command) =>
    new Promise((resolve, reject) => {
      const n = next++;
      waiting.set(n, (status) => {
        waiting.delete(n);
        if (status === 0) resolve();
        else reject(new Error(`${command}: exit ${status}`));
      });
      shell.stdin?.write(`( ${command}; echo "done ${n} $?" ) &\n`);
    });
};
