/**
 * Answers the auth callout of a cluster's nats-servers: who proves a credential gets a token for its projects, for a while. @paper §3.2
 *
 * What it may be told it is told: an unknown or expired credential is refused. While the directory is not full, or no iam runs,
 * the server refuses every client, seconds later: by that SDKs tell it from a bad credential, and try again (`sdk/transport/sign-in.ts`).
 */
import { createHash } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { CLIENTS_ACCOUNT, permissionsOfClient } from '#infra/nats/config.ts';
import { CALLOUT_SUBJECT } from '#bus/subjects.ts';
import { toWireError } from '#bus/errors.ts';
import { actionsIn, reachOf } from '#actors/project/authority.ts';
import type { Directory, Holder } from '#actors/project/directory.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { Log } from '../../log/log.ts';
import { type CalloutRequest, CalloutSigner, hasSigned, readCalloutRequest, type UserToken } from './callout-token.ts';
import { IAM_LIMITS } from './limits.ts';

export type CalloutOptions = {
  readonly connection: NatsConnection;
  readonly directory: Directory;
  readonly clock: Clock;
  readonly log: Log;
  /** The key whose public half the servers know as their callout's issuer. */
  readonly issuer: { readonly seed: string; readonly publicKey: string };
};

export const serveCallout = ({ connection, directory, clock, log, issuer }: CalloutOptions): { close(): void } => {
  const signer = new CalloutSigner(issuer.seed, issuer.publicKey);
  const subscription = connection.subscribe(CALLOUT_SUBJECT, {
    queue: 'iam',
    callback: (error, message) => {
      if (error) return;
      try {
        const request = readCalloutRequest(message.string());
        const decided = decide(directory, request, clock.now());
        if ('error' in decided) log.info('callout.refused', { reason: decided.error });
        message.respond(signer.answer(request, decided, Math.floor(clock.now() / 1_000)));
      } catch (thrown) {
        log.warn('callout.failed', { message: toWireError(thrown).message });
      }
    },
  });
  return { close: () => subscription.unsubscribe() };
};

export const decide = (directory: Directory, request: CalloutRequest, now: number): UserToken | { readonly error: string } => {
  const proof = proofOf(request);
  const holder = proof === undefined ? undefined : directory.holderOf(proof);
  if (!proof || !holder) return { error: 'unknown or revoked credential' };
  const { expiresAt } = holder.credential;
  if (expiresAt !== null && expiresAt <= now) return { error: `credential ${holder.credential.id} has expired` };
  const lifeMs = holder.credential.proof.type === 'nkey' ? IAM_LIMITS.tokenLifeMs : IAM_LIMITS.secretTokenLifeMs;
  const ends = Math.min(now + lifeMs, expiresAt ?? Number.POSITIVE_INFINITY);
  return {
    name: proof,
    account: CLIENTS_ACCOUNT,
    expiresAtSeconds: Math.ceil(ends / 1_000),
    permissions: permissionsOfClient(clientOf(directory, holder, proof)),
    subscriptions: IAM_LIMITS.subscriptionsPerClient,
  };
};

/** What the connection has proved to hold: a key by its signature, a secret by showing it. */
const proofOf = ({ connect_opts: { nkey, sig, auth_token, pass }, client_info: { nonce } }: CalloutRequest): string | undefined => {
  if (nkey && sig && nonce) return /^U[A-Z2-7]{55}$/.test(nkey) && hasSigned(nkey, nonce, sig) ? nkey : undefined;
  const secret = auth_token ?? pass;
  return secret ? createHash('sha256').update(secret).digest('hex') : undefined;
};

const clientOf = (directory: Directory, { principal, project, credential }: Holder, proof: string) => ({
  project,
  name: credential.id,
  publicKey: proof,
  reach: reachOf(directory, principal).map((to) => ({ project: to, operations: actionsIn(directory, principal, to).includes('sandbox.exec') })),
});
