/**
 * Where the platform is and who is asking: servers, project and credentials, from options or from a context file.
 * `dsec up` writes the default file. Reading the environment happens here and nowhere else in the SDK.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { ProjectName } from '#bus/ids.ts';

export const DEFAULT_CONTEXT_FILE = '/var/lib/dsec/context.json';

export const Credentials = z.union(
  [
    z.strictObject({ user: z.string().min(1), password: z.string() }),
    z.strictObject({ nkeySeed: z.string().min(1) }),
    z.strictObject({ token: z.string().min(1) }),
  ],
  'credentials are {user, password}, {nkeySeed} or {token}',
);
export type Credentials = z.infer<typeof Credentials>;

/** Content of a context file. Fields that this version does not know are ignored: the file is written by the platform. */
export const Context = z.object({
  servers: z.array(z.string().min(1)).min(1).max(64),
  project: ProjectName,
  credentials: Credentials.optional(),
  /** Prefix of the inboxes that the credentials may use; the bus's default when absent. */
  inboxPrefix: z.string().min(1).max(100).optional(),
});
export type Context = z.infer<typeof Context>;

export type ContextOptions = {
  /** Path of a context file, in place of DSEC_CONTEXT and the default. Not read when servers and project are both given. */
  readonly contextFile?: string | undefined;
  readonly servers?: readonly string[] | string | undefined;
  readonly project?: string | undefined;
  readonly credentials?: Credentials | undefined;
  readonly inboxPrefix?: string | undefined;
};

export const resolveContext = (options: ContextOptions, environment: Readonly<Record<string, string | undefined>> = process.env): Context => {
  const servers = typeof options.servers === 'string' ? [options.servers] : options.servers;
  const needsFile = servers === undefined || options.project === undefined;
  const named = options.contextFile ?? (environment['DSEC_CONTEXT'] || undefined);
  const base = needsFile ? readContextFile(named ?? DEFAULT_CONTEXT_FILE, named !== undefined) : {};
  const given = { servers, project: options.project, credentials: options.credentials, inboxPrefix: options.inboxPrefix };
  const merged = { ...base, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) };
  const parsed = Context.safeParse(merged);
  if (!parsed.success) throw invalid('INVALID_ARGUMENT', needsFile ? `context file ${named ?? DEFAULT_CONTEXT_FILE}` : 'connect options', parsed.error);
  return parsed.data;
};

const readContextFile = (path: string, named: boolean): object => {
  try {
    const raw: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (raw !== null && typeof raw === 'object' && !Array.isArray(raw)) return raw;
    throw DsecError.of('INVALID_ARGUMENT', `context file ${path} is not a JSON object`);
  } catch (cause) {
    if (cause instanceof DsecError) throw cause;
    if (cause instanceof SyntaxError) throw DsecError.of('INVALID_ARGUMENT', `context file ${path} is not JSON`, { cause });
    const code = (cause as NodeJS.ErrnoException).code ?? 'unreadable';
    if (code === 'EACCES')
      throw DsecError.of('UNAUTHENTICATED', `context file ${path} may not be read by this user; ask its owner or name another in DSEC_CONTEXT`, { cause });
    const next = named ? 'name an existing one' : 'start the platform with `dsec up`, or name a context file in DSEC_CONTEXT';
    throw DsecError.of(named ? 'INVALID_ARGUMENT' : 'BUS_UNAVAILABLE', `context file ${path} cannot be read (${code}); ${next}`, {
      cause,
      outcome: 'not_applied',
    });
  }
};
