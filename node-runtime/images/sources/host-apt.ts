/**
 * Where this host gets its Debian packages from: asked of apt, never known here. A root file system is built from the same
 * mirrors, with the same proxy and date checks.
 */
import { readFile } from 'node:fs/promises';
import { DsecError } from '#bus/errors.ts';
import { runTool } from '../tools/run-tool.ts';

export type HostApt = { readonly suite: string; readonly sources: readonly string[]; readonly options: readonly string[] };

export type IndexTarget = { readonly uri: string; readonly release: string; readonly component: string; readonly origin: string };
export type OsRelease = { readonly id: string; readonly codename: string };

const FIELDS = ['$(REPO_URI)', '$(RELEASE)', '$(COMPONENT)', '$(ORIGIN)'].join('\t');

/** `suite`: a release's code name; default the host's own. HOST_UNFIT when apt knows no mirror for it. */
export const hostApt = async (suite: string | undefined, signal: AbortSignal | undefined): Promise<HostApt> => {
  const os = parseOsRelease(await readFile('/etc/os-release', 'utf8').catch(() => ''));
  const wanted = suite ?? os.codename;
  if (wanted === '') throw DsecError.of('HOST_UNFIT', '/etc/os-release names no release; say which one to build with --suite');
  if (!/^[a-z][a-z0-9.-]{0,63}$/.test(wanted))
    throw DsecError.of('INVALID_ARGUMENT', `suite ${JSON.stringify(wanted)} is not the code name of a release, like ${os.codename || 'bookworm'}`);
  const listing = await runTool({
    command: ['apt-get', 'indextargets', '--format', FIELDS, 'Created-By: Packages'],
    doing: "read the host's apt sources",
    collect: true,
    signal,
  });
  const sources = sourcesFor(wanted, os, parseTargets(listing));
  if (sources.length === 0)
    throw DsecError.of(
      'HOST_UNFIT',
      `apt of this host has no source of ${os.id || 'its own'} packages (release ${os.codename}); add one to /etc/apt/sources.list.d and run apt-get update`,
    );
  const options = aptOptions(await runTool({ command: ['apt-config', 'dump'], doing: "read the host's apt options", collect: true, signal }));
  return { suite: wanted, sources, options };
};

export const parseOsRelease = (text: string): OsRelease => {
  const read = (key: string): string => new RegExp(`^${key}=["']?([^"'\\n]*)`, 'm').exec(text)?.[1] ?? '';
  return { id: read('ID'), codename: read('VERSION_CODENAME') };
};

export const parseTargets = (text: string): IndexTarget[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [uri = '', release = '', component = '', origin = ''] = line.split('\t');
      return { uri, release, component, origin };
    });

/** The distribution's own archives, with its updates and security fixes; third parties' repositories are left out. */
export const sourcesFor = (suite: string, os: OsRelease, targets: readonly IndexTarget[]): string[] => {
  const own = targets.filter(
    ({ release, component, origin }) =>
      component === 'main' &&
      (origin === '' || origin.startsWith('$(') || origin.toLowerCase() === os.id) &&
      (release === os.codename || release === `${os.codename}-updates` || release === `${os.codename}-security`),
  );
  return [...new Set(own.map(({ uri, release }) => `deb ${uri} ${suite}${release.slice(os.codename.length)} main`))];
};

const PASSED_ON = /^Acquire::(https?::|Check-Valid-Until|Check-Date|Retries|ForceIPv4|ForceIPv6)/;

/** How to reach the mirrors. Nothing else of the host's apt configuration belongs into an image. */
export const aptOptions = (dump: string): string[] => dump.split('\n').filter((line) => PASSED_ON.test(line) && !line.endsWith(' "";'));
