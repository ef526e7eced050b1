/**
 * A package of the npm registry, fetched with the installed npm client by its own configuration, as a tree at a prefix.
 * No script of the package or of its dependencies is run.
 */
import { mkdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { DsecError } from '#bus/errors.ts';
import { jsonOrUndefined } from '#bus/json.ts';
import { runTool, type ToolFailure } from '../tools/run-tool.ts';
import { assertPrefix } from './prefix.ts';
import type { BuildProgress, PreparedTree, SourceContext } from './source.ts';
import { prepareTar } from './tar.ts';

export type NpmSource = {
  readonly type: 'npm';
  readonly name: string;
  /** Exact, so that the same source is the same image. */
  readonly version: string;
  /** Default `/workspace/<name>`. */
  readonly prefix?: string;
  /** Which dependencies to install beside it; default `none`. */
  readonly dependencies?: 'none' | 'production' | 'all';
};

export type NpmPackage = { readonly tarball: string; readonly name: string; readonly version: string; readonly integrity: string };

type FetchOptions = { readonly intoDir: string; readonly signal?: AbortSignal | undefined; readonly onProgress?: (progress: BuildProgress) => void };

const PackAnswer = z.array(z.object({ name: z.string(), version: z.string(), filename: z.string(), integrity: z.string() })).min(1);

/** Downloads the package's archive into `intoDir`; the client checks its integrity. INVALID_ARGUMENT, HOST_UNFIT, CANCELLED. */
export const fetchNpmPackage = async (name: string, version: string, options: FetchOptions): Promise<NpmPackage> => {
  assertSpecifier(name, version);
  options.onProgress?.({ step: 'fetching', detail: `${name}@${version} from the npm registry` });
  const answer = await runTool({
    command: ['npm', 'pack', '--json', '--ignore-scripts', '--silent', `--pack-destination=${options.intoDir}`, '--', `${name}@${version}`],
    doing: `fetch ${name}@${version} from the npm registry`,
    cwd: options.intoDir,
    env: QUIET,
    collect: true,
    signal: options.signal,
    explain: explainFailure(`fetch ${name}@${version} from the npm registry`),
  });
  const packed = readAnswer(answer, `${name}@${version}`);
  return { tarball: join(options.intoDir, basename(packed.filename)), name: packed.name, version: packed.version, integrity: packed.integrity };
};

export const prepareNpm = async (source: NpmSource, context: SourceContext): Promise<PreparedTree> => {
  const prefix = assertPrefix(source.prefix ?? `/workspace/${basename(source.name)}`);
  const download = join(context.workDir, 'download');
  await mkdir(download);
  const fetched = await fetchNpmPackage(source.name, source.version, { intoDir: download, signal: context.signal, onProgress: context.onProgress });
  const tree = await prepareTar({ type: 'tar', path: fetched.tarball, prefix, stripComponents: 1, whiteouts: 'keep' }, context);
  if ((source.dependencies ?? 'none') !== 'none') await installDependencies(join(tree.root, prefix), source, context);
  await rm(download, { recursive: true });
  return { ...tree, description: `npm ${fetched.name}@${fetched.version} ${fetched.integrity} at ${prefix}` };
};

const installDependencies = async (directory: string, source: NpmSource, context: SourceContext): Promise<void> => {
  context.onProgress({ step: 'fetching', detail: `dependencies of ${source.name}@${source.version}` });
  await runTool({
    command: [
      'npm',
      'install',
      source.dependencies === 'all' ? '--include=dev' : '--omit=dev',
      '--ignore-scripts',
      '--no-audit',
      '--no-package-lock',
      '--no-save',
      '--silent',
      '--json',
    ],
    doing: `install the dependencies of ${source.name}@${source.version}`,
    cwd: directory,
    env: QUIET,
    collect: true,
    signal: context.signal,
    explain: explainFailure(`install the dependencies of ${source.name}@${source.version}`),
  });
  // The client's own note of what it installed differs from run to run and serves nobody in an image.
  await rm(join(directory, 'node_modules/.package-lock.json'), { force: true });
};

const FailureAnswer = z.object({ error: z.object({ code: z.string(), summary: z.string() }) });
const NO_SUCH_PACKAGE = ['E404', 'ETARGET', 'ENOVERSIONS'];

/** The client says what was wrong as JSON. A package that does not exist is the caller's mistake, everything else the way to the registry. */
const explainFailure =
  (doing: string) =>
  ({ output }: ToolFailure): DsecError | undefined => {
    const answer = FailureAnswer.safeParse(jsonOrUndefined(output));
    if (!answer.success) return undefined;
    const { code, summary } = answer.data.error;
    const unknown = NO_SUCH_PACKAGE.includes(code);
    return DsecError.of(
      unknown ? 'INVALID_ARGUMENT' : 'INTERNAL',
      `could not ${doing}: ${code}: ${summary}${unknown ? '' : '; see whether "npm ping" works on this host, then try again'}`,
      {
        outcome: 'not_applied',
        details: { code },
      },
    );
  };

/** The client looks for newer versions of itself and for sponsors otherwise. */
const QUIET = { npm_config_update_notifier: 'false', npm_config_fund: 'false' };

const assertSpecifier = (name: string, version: string): void => {
  if (!/^(@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*$/.test(name) || name.length > 214)
    throw DsecError.of('INVALID_ARGUMENT', `${JSON.stringify(name.slice(0, 214))} is not the name of an npm package`);
  if (!/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version))
    throw DsecError.of(
      'INVALID_ARGUMENT',
      `${JSON.stringify(version.slice(0, 100))} is not an exact version, like 1.2.3; ranges and tags would make a different image every day`,
    );
};

const readAnswer = (answer: string, what: string): z.infer<typeof PackAnswer>[number] => {
  const [first] = PackAnswer.safeParse(jsonOrUndefined(answer)).data ?? [];
  if (!first) throw DsecError.of('HOST_UNFIT', `this npm client gave no usable answer for ${what}; npm 9 or newer is needed`);
  return first;
};
