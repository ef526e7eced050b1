/**
 * Keys of the single machine: one nkey seed per role and per client user, made once and kept 0600 in `<dataDir>/credentials`.
 * A seed never leaves its file except into the process that connects with it; the server's configuration holds public keys.
 */
import { link, mkdir, open, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nkeys } from '@nats-io/nats-core';
import { DsecError } from '#bus/errors.ts';
import { type EdgeName, NAME_PATTERN, type ProjectName } from '#bus/ids.ts';
import { type ClientUser, clientInboxPrefix } from './config.ts';
import { ROLES, type Role } from './roles.ts';

export type Key = { readonly nkeySeed: string; readonly publicKey: string };
export type ClientKey = ClientUser & Key;
export type BusKeys = { readonly roles: Readonly<Record<Role, Key>>; readonly system: Key; readonly clients: readonly ClientKey[] };

/** Reads every key, making those that do not exist yet. Safe to run twice at once: the first file written wins. */
export const ensureKeys = async (directory: string, clients: readonly Pick<ClientUser, 'project' | 'name'>[]): Promise<BusKeys> => {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const roles = Object.fromEntries(
    await Promise.all(ROLES.map(async (role) => [role, await ensureKey(join(directory, `role-${role}.nk`))] as const)),
  ) as Record<Role, Key>;
  return {
    roles,
    system: await ensureKey(join(directory, 'system.nk')),
    clients: await Promise.all(
      clients.map(async ({ project, name }) => {
        if (!NAME_PATTERN.test(name)) throw DsecError.of('INVALID_ARGUMENT', `a client's name must match ${NAME_PATTERN.source}, not ${JSON.stringify(name)}`);
        return { project, name, ...(await ensureKey(join(directory, `client-${project}.${name}.nk`))) };
      }),
    ),
  };
};

/** Key of one node of several: `<directory>/edge-<name>.nk`. */
export const ensureEdgeKey = (directory: string, edge: EdgeName): Promise<Key> => ensureKey(join(directory, `edge-${edge}.nk`));

/** Key that signs who may connect (auth callout): `<directory>/callout-issuer.nk`. */
export const ensureIssuerKey = (directory: string): Promise<Key> => ensureKey(join(directory, 'callout-issuer.nk'), () => nkeys.createAccount());

const ensureKey = async (file: string, create = () => nkeys.createUser()): Promise<Key> => {
  const seed = (await readSeed(file)) ?? (await createSeed(file, create));
  try {
    return { nkeySeed: seed, publicKey: nkeys.fromSeed(new TextEncoder().encode(seed)).getPublicKey() };
  } catch (cause) {
    throw DsecError.of('BUS_MISCONFIGURED', `${file} holds no nkey seed; restore it, or delete it and start again to make a new one`, { cause });
  }
};

const readSeed = async (file: string): Promise<string | undefined> => {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw DsecError.of('HOST_UNFIT', `key ${file} cannot be read (${(cause as NodeJS.ErrnoException).code}); run as its owner`, { cause });
  }
};

/** Written whole and then linked into place, which fails when another process was faster: its key is the one. */
const createSeed = async (file: string, create: () => ReturnType<typeof nkeys.createUser>): Promise<string> => {
  const seed = new TextDecoder().decode(create().getSeed());
  const aside = `${file}.${process.pid}`;
  const handle = await open(aside, 'w', 0o600);
  await handle.writeFile(`${seed}\n`);
  await handle.sync();
  await handle.close();
  try {
    await link(aside, file);
    return seed;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
    return (await readSeed(file)) ?? seed;
  } finally {
    await unlink(aside);
  }
};

/** What SDK and CLI read to find the platform (`sdk/context.ts` has the reader's schema). */
export type ClientContext = {
  readonly servers: readonly string[];
  readonly project: ProjectName;
  readonly credentials: { readonly nkeySeed: string };
  readonly inboxPrefix: string;
};

export const clientContext = (servers: readonly string[], client: ClientKey): ClientContext => ({
  servers,
  project: client.project,
  credentials: { nkeySeed: client.nkeySeed },
  inboxPrefix: clientInboxPrefix(client),
});

/** Replaces the context file in one step: a reader sees the old one or the new one. 0600, it holds a key. */
export const writeContext = async (file: string, context: ClientContext): Promise<void> => {
  await mkdir(dirname(file), { recursive: true });
  const aside = `${file}.${process.pid}`;
  await writeFile(aside, `${JSON.stringify(context, null, 2)}\n`, { mode: 0o600 });
  await rename(aside, file);
};
