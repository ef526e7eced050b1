/**
 * A Debian root file system, made by mmdebstrap from the host's own mirrors.
 *
 * The same packages make the same tree: what the host would leave in it (its name, its resolver, its proxy, device nodes,
 * times of installation) is taken out. It runs in process and mount namespaces of its own, so that nothing stays mounted or
 * running when it is killed.
 */
import { access, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DsecError } from '#bus/errors.ts';
import { IMAGE_LIMITS } from '../limits.ts';
import { runTool, type ToolFailure } from '../tools/run-tool.ts';
import { hostApt } from './host-apt.ts';
import type { PreparedTree, SourceContext } from './source.ts';

export const VARIANTS = ['essential', 'apt', 'minbase', 'buildd', 'important', 'standard'] as const;

export type MmdebstrapSource = {
  readonly type: 'mmdebstrap';
  /** Code name of a release; default that of the host. */
  readonly suite?: string;
  /** Which packages to begin with; default `minbase`. */
  readonly variant?: (typeof VARIANTS)[number];
  /** Further packages. */
  readonly include?: readonly string[];
  /** Leave out documentation, manual pages and translations. */
  readonly slim?: boolean;
};

/** Ages in /etc/shadow come from this instead of the clock; any constant will do. */
const FIXED_DATE_SECONDS = 1_577_836_800;
const DOCUMENTATION = ['usr/share/man', 'usr/share/info', 'usr/share/locale', 'usr/share/lintian'];

export const prepareMmdebstrap = async (source: MmdebstrapSource, context: SourceContext): Promise<PreparedTree> => {
  const include = source.include ?? [];
  const variant = source.variant ?? 'minbase';
  const bad = include.find((name) => !/^[a-z0-9][a-z0-9+.-]*(:[a-z0-9]+)?$/.test(name));
  if (bad !== undefined) throw DsecError.of('INVALID_ARGUMENT', `${JSON.stringify(bad)} is not the name of a Debian package`);
  if (include.length > IMAGE_LIMITS.includePackages)
    throw DsecError.of('INVALID_ARGUMENT', `at most ${IMAGE_LIMITS.includePackages} packages can be included by name`);
  if (!VARIANTS.includes(variant)) throw DsecError.of('INVALID_ARGUMENT', `variant ${variant} is none of ${VARIANTS.join(', ')}`);
  if (process.getuid?.() !== 0) throw DsecError.of('HOST_UNFIT', 'a root file system is built as root; run the command as root');

  const apt = await hostApt(source.suite, context.signal);
  const root = join(context.workDir, 'root');
  await mkdir(root, { mode: 0o755 });
  context.onProgress({ step: 'installing', detail: `mmdebstrap ${apt.suite} ${variant}` });
  await runTool({
    command: [...ISOLATED, 'mmdebstrap', ...argumentsFor(variant, include, apt.options), apt.suite, root, ...apt.sources],
    doing: `build a ${apt.suite} root file system`,
    program: 'mmdebstrap',
    explain: explainFailure(apt.suite),
    env: { SOURCE_DATE_EPOCH: String(FIXED_DATE_SECONDS), TMPDIR: context.workDir },
    signal: context.signal,
    onLine: (line) => context.onProgress({ step: 'installing', detail: line.replace(/^I: /, '') }),
  });
  await removeHostTraces(root);
  if (source.slim) await removeDocumentation(root);
  return { root, description: `mmdebstrap ${apt.suite} ${variant}${include.length > 0 ? ` + ${include.join(' ')}` : ''}`, generated: true };
};

/** apt's words for a package that the mirrors do not have; anything else is most likely the way to a mirror. */
const explainFailure =
  (suite: string) =>
  ({ words, ending }: ToolFailure): DsecError =>
    /Unable to locate package|has no installation candidate/.test(words)
      ? DsecError.of('INVALID_ARGUMENT', `could not build a ${suite} root file system: ${words}`)
      : DsecError.of(
          'INTERNAL',
          `could not build a ${suite} root file system (${ending}): ${words}; see whether apt-get update works on this host, then try again`,
          {
            outcome: 'not_applied',
          },
        );

const ISOLATED = ['unshare', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc', '--'] as const;

const argumentsFor = (variant: string, include: readonly string[], aptOptions: readonly string[]): string[] => [
  '--mode=root',
  '--format=directory',
  `--variant=${variant}`,
  ...(include.length > 0 ? [`--include=${include.join(',')}`] : []),
  ...aptOptions.map((option) => `--aptopt=${option}`),
  // The build's directory is closed to everybody else, so apt's own unprivileged user could not download into it.
  '--aptopt=APT::Sandbox::User "root"',
];

const removeHostTraces = async (root: string): Promise<void> => {
  for (const name of await readdir(join(root, 'dev'))) await rm(join(root, 'dev', name), { recursive: true }); // every sandbox gets its own
  await rm(join(root, 'etc/apt/apt.conf.d/99mmdebstrap'), { force: true });
  await rm(join(root, 'etc/hostname'), { force: true });
  await rm(join(root, 'etc/resolv.conf'), { force: true });
  await writeFile(join(root, 'etc/resolv.conf'), '');
  const hosts = join(root, 'etc/hosts');
  if (
    !(await access(hosts).then(
      () => true,
      () => false,
    ))
  )
    await writeFile(hosts, '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n');
};

/** Removed afterwards: dpkg's own exclusion filters every package through a slow program. Licences stay. */
const removeDocumentation = async (root: string): Promise<void> => {
  for (const directory of DOCUMENTATION) await rm(join(root, directory), { recursive: true, force: true });
  const docs = join(root, 'usr/share/doc');
  for (const entry of await readdir(docs, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    for (const name of await readdir(join(docs, entry.name))) if (name !== 'copyright') await rm(join(docs, entry.name, name), { recursive: true });
  }
};
