/**
 * Who asks. @paper §3.2
 *
 * Clients reach the platform through service imports that share their identity: the server puts `Nats-Request-Info` into each
 * request, in the place of whatever header of that name the client sent, and a reply subject of its own. A second header of that
 * name, in any spelling, was put there by somebody else and is refused. What has neither comes from inside the platform's own
 * account, where few roles may ask (`infra/nats/roles.ts`).
 */
import type { Msg, MsgHdrs } from '@nats-io/transport-node';
import { z } from 'zod';
import { DsecError } from '#bus/errors.ts';
import type { ProjectName } from '#bus/ids.ts';
import { jsonOrUndefined } from '#bus/json.ts';
import { ACTIONS, type Action, type PrincipalKind } from '#bus/project/policy.ts';
import { actionsIn } from '#actors/project/authority.ts';
import type { Directory } from '#actors/project/directory.ts';
import type { Clock } from '#actors/ports/clock.ts';

export type Identity = {
  readonly principal: string;
  readonly kind: PrincipalKind;
  /** What it may do in the project that is asked. */
  readonly actions: readonly Action[];
  readonly credential: { readonly id: string; readonly expiresAt: number | null } | null;
};
export type Authenticate = (message: Pick<Msg, 'headers' | 'reply'>, project: ProjectName) => Identity;

const REQUEST_INFO = 'Nats-Request-Info';
/** `user`: the public key that signed the connection's nonce; `name_tag`: what the callout wrote into the connection's own token. */
const RequestInfo = z.object({ acc: z.string().regex(/^CLIENTS/, 'not a client'), user: z.string(), name_tag: z.string().optional() });

export const authenticateBy =
  (directory: Directory, clock: Clock): Authenticate =>
  (message, project) => {
    if (isFromInside(message)) return PLATFORM;
    const info = infoOf(message.headers);
    const holder = directory.holderOf(info.name_tag || info.user);
    if (!holder)
      throw DsecError.of('UNAUTHENTICATED', 'these credentials are not known here, or have been revoked; get new ones from an owner of your project');
    const { id, expiresAt } = holder.credential;
    if (expiresAt !== null && expiresAt <= clock.now())
      throw DsecError.of('UNAUTHENTICATED', `credential ${id} has expired; get a new one from an owner of your project`);
    return { principal: holder.principal, kind: holder.kind, actions: actionsIn(directory, holder.principal, project), credential: { id, expiresAt } };
  };

/** On a bus without accounts, as a developer's own: whoever can connect may do everything. */
export const everybody: Authenticate = () => ({ principal: 'anonymous', kind: 'user', actions: ACTIONS, credential: null });

const PLATFORM: Identity = { principal: 'platform', kind: 'service', actions: ACTIONS, credential: null };

/** The server's own reply subjects, as it gives them to what comes from another account. */
const isFromInside = ({ headers, reply }: Pick<Msg, 'headers' | 'reply'>): boolean => infosIn(headers).length === 0 && !reply?.startsWith('_R_.');

const infosIn = (headers: MsgHdrs | undefined): string[] =>
  (headers?.keys() ?? []).filter((key) => key.toLowerCase() === REQUEST_INFO.toLowerCase()).flatMap((key) => headers?.values(key) ?? []);

const infoOf = (headers: MsgHdrs | undefined): z.infer<typeof RequestInfo> => {
  const values = infosIn(headers);
  const [own] = headers?.values(REQUEST_INFO) ?? [];
  const parsed = values.length === 1 && own ? RequestInfo.safeParse(jsonOrUndefined(own)) : undefined;
  if (!parsed?.success)
    throw DsecError.of('UNAUTHENTICATED', 'the request does not say who asks, or says it twice; connect with the credentials of a context file');
  return parsed.data;
};
