/**
 * Finds the nats-server program that the platform runs and the tests use: one rule for both.
 *
 * Order: `DSEC_NATS_SERVER`, then PATH when new enough, then `<project root>/.cache/bin`. Whoever names a program by the
 * variable gets that one or an error, never another. Does not download anything: `infra/setup` does.
 */
import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import { DsecError } from '#bus/errors.ts';

/** Fast ingest (`allow_batched`) came with 2.14. */
export const MINIMUM_NATS_SERVER = '2.14.0';
/** A program that does not even print its version in this time is not the one we look for. */
const VERSION_TIMEOUT_MS = 10_000;

export type NatsServerProgram = { readonly path: string; readonly version: string };
export type LocateOptions = { readonly env: Readonly<Record<string, string | undefined>>; readonly projectRoot: string };

export const locateNatsServer = async ({ env, projectRoot }: LocateOptions): Promise<NatsServerProgram> => {
  const named = env['DSEC_NATS_SERVER'];
  if (named) return programNamed(named);
  const candidates = [...executablesOnPath(env['PATH'] ?? ''), join(projectRoot, '.cache', 'bin', 'nats-server')];
  const seen: string[] = [];
  for (const path of candidates) {
    const version = await versionOf(path);
    if (version && isAtLeast(version, MINIMUM_NATS_SERVER)) return { path, version };
    if (version) seen.push(`${path} is ${version}`);
  }
  const found = seen.length > 0 ? `; found only: ${seen.join(', ')}` : '';
  throw DsecError.of(
    'HOST_UNFIT',
    `no nats-server of version ${MINIMUM_NATS_SERVER} or newer on PATH or in .cache/bin${found}. Run infra/setup/setup.sh, it fetches one`,
    {
      details: { minimum: MINIMUM_NATS_SERVER, looked: candidates },
    },
  );
};

const programNamed = async (path: string): Promise<NatsServerProgram> => {
  const version = await versionOf(path);
  if (!version)
    throw DsecError.of('HOST_UNFIT', `DSEC_NATS_SERVER names ${path}, which is no nats-server that runs; correct or unset it, or run infra/setup/setup.sh`);
  if (!isAtLeast(version, MINIMUM_NATS_SERVER))
    throw DsecError.of(
      'BUS_TOO_OLD',
      `DSEC_NATS_SERVER names ${path}, version ${version}; at least ${MINIMUM_NATS_SERVER} is needed. Unset it or run infra/setup/setup.sh`,
      {
        details: { version, minimum: MINIMUM_NATS_SERVER },
      },
    );
  return { path, version };
};

const executablesOnPath = (path: string): string[] =>
  path
    .split(delimiter)
    .filter((directory) => isAbsolute(directory))
    .map((directory) => join(directory, 'nats-server'));

/** Version that a program reports, or undefined when it is absent, not executable or something else. */
const versionOf = async (path: string): Promise<string | undefined> => {
  try {
    await access(path, constants.X_OK);
    const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: VERSION_TIMEOUT_MS });
    return /v?(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
};

/** Compares dotted numbers; what follows a `-` (pre-release) is ignored, since a pre-release has the features of its release. */
export const isAtLeast = (version: string, minimum: string): boolean => {
  const have = numbersOf(version);
  const need = numbersOf(minimum);
  for (let i = 0; i < need.length; i += 1) {
    const difference = (have[i] ?? 0) - (need[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
};
const numbersOf = (version: string): number[] => (version.split('-')[0] ?? '').split('.').map((part) => Number.parseInt(part, 10) || 0);
