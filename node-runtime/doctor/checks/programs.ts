import { isAtLeast, locateNatsServer } from '#infra/nats/locate.ts';
import { absent, type Check, limited, type ProbeContext, type ProbeResult, present, type Subject } from '../finding.ts';
import { firstLine, onPath, run } from '../helpers.ts';

/** First dotted number that a program prints when asked for its version. */
const versionOf = async (program: string, ...args: readonly string[]): Promise<string | undefined> =>
  /\d+(\.\d+)+/.exec((await run(program, ...args)).output)?.[0];

const programCheck = (subject: Omit<Subject, 'group'>, program: string, versionArguments: readonly string[] = ['--version']): Check => ({
  ...subject,
  group: 'programs',
  probe: async ({ env }: ProbeContext): Promise<ProbeResult> => {
    const path = onPath(program, env['PATH']);
    return path ? present((await versionOf(path, ...versionArguments)) ?? path) : absent();
  },
});

export const PROGRAM_CHECKS: readonly Check[] = [
  {
    name: 'nats-server 2.14',
    group: 'programs',
    required: true,
    usedFor: 'the event log and every message between roles',
    cost: 'the platform does not start',
    fallback: null,
    probe: async (context) => {
      const { path, version } = await locateNatsServer(context);
      return present(`${version} ${path}`);
    },
  },
  {
    name: 'mkfs.erofs',
    group: 'programs',
    required: true,
    usedFor: 'building layers',
    cost: 'no layer can be built; layers that exist still run',
    fallback: null,
    probe: async ({ env }) => {
      const path = onPath('mkfs.erofs', env['PATH']);
      if (!path) return absent();
      const version = (await versionOf(path, '--version')) ?? (await versionOf(path, '-V')) ?? '0';
      return isAtLeast(version, '1.8') ? present(version) : limited(`${version}: no zstd, no tar input (1.8 has them); lz4 and unpacked trees are used`);
    },
  },
  programCheck(
    {
      name: 'mmdebstrap',
      required: false,
      usedFor: 'building a Debian base layer',
      cost: 'no base layer from Debian packages',
      fallback: 'import a tar or a directory',
    },
    'mmdebstrap',
  ),
  programCheck({ name: 'tar', required: true, usedFor: 'importing layers', cost: 'archives cannot be imported', fallback: null }, 'tar'),
  programCheck(
    { name: 'setpriv', required: true, usedFor: 'children that end with their parent', cost: 'a killed role would leave its children behind', fallback: null },
    'setpriv',
  ),
  programCheck({ name: 'flock', required: true, usedFor: 'one nats-server per store', cost: 'the embedded bus does not start', fallback: null }, 'flock'),
  programCheck({ name: 'ip', required: false, usedFor: 'this doctor’s network probes', cost: 'veth and loopback cannot be tried', fallback: null }, 'ip', [
    '-Version',
  ]),
  programCheck(
    { name: 'gcc', required: false, usedFor: 'building the launcher and the agent', cost: 'only ready-built ones can be used', fallback: null },
    'gcc',
  ),
  {
    name: 'musl-gcc',
    group: 'programs',
    required: false,
    usedFor: 'a smaller agent',
    cost: 'more memory per sandbox',
    fallback: 'static glibc',
    probe: ({ env }) => {
      const path = onPath('musl-gcc', env['PATH']);
      return path ? present() : absent();
    },
  },
  {
    name: 'static busybox',
    group: 'programs',
    required: false,
    usedFor: 'the small root of kernel tests',
    cost: 'those tests cannot run',
    fallback: null,
    probe: async ({ env }) => {
      const path = onPath('busybox', env['PATH']);
      if (!path) return absent();
      const linked = await run('ldd', path);
      return linked.ok && linked.output.includes('=>') ? limited('linked against shared libraries') : present(firstLine((await run(path)).output));
    },
  },
  programCheck(
    { name: 'crun', required: false, usedFor: 'the reference of the benchmarks', cost: 'benchmarks print no ratio against it', fallback: null },
    'crun',
  ),
];
