/**
 * The tokens of NATS auth callout: the server's request is verified, the answer and the client's own token are signed. With
 * `node:crypto` throughout: the library's pure JavaScript takes 20 times as long, and time-outs under a burst of connects. @paper §3.2
 */
import { createPrivateKey, createPublicKey, type KeyObject, randomUUID, sign, verify } from 'node:crypto';
import { z } from 'zod';
import { DsecError } from '#bus/errors.ts';
import { jsonOrUndefined } from '#bus/json.ts';

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const decodeBase32 = (text: string): Buffer => {
  const bytes: number[] = [];
  let bits = 0;
  let value = 0;
  for (const letter of text) {
    value = (value << 5) | BASE32.indexOf(letter);
    bits += 5;
    if (bits < 8) continue;
    bytes.push((value >>> (bits - 8)) & 255);
    bits -= 8;
    value &= (1 << bits) - 1;
  }
  return Buffer.from(bytes);
};

/** DER of an Ed25519 key around its 32 bytes (RFC 8410). An nkey's text has one byte of prefix for a public key, two for a seed. */
const PRIVATE_DER = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_DER = Buffer.from('302a300506032b6570032100', 'hex');
const privateKeyOf = (seed: string): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PRIVATE_DER, decodeBase32(seed).subarray(2, 34)]), format: 'der', type: 'pkcs8' });
export const publicKeyOf = (nkey: string): KeyObject =>
  createPublicKey({ key: Buffer.concat([PUBLIC_DER, decodeBase32(nkey).subarray(1, 33)]), format: 'der', type: 'spki' });

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const HEADER = part({ typ: 'JWT', alg: 'ed25519-nkey' });

export type Permissions = { readonly publish: readonly string[]; readonly subscribe: readonly string[] };
export type UserToken = {
  /** What the request infos of the connection carry as `name_tag`: the credential's proof. */
  readonly name: string;
  readonly account: string;
  readonly expiresAtSeconds: number;
  readonly permissions: Permissions;
  readonly subscriptions: number;
};

const Claims = z.object({
  iss: z.string(),
  nats: z.object({
    user_nkey: z.string(),
    server_id: z.object({ id: z.string(), name: z.string().optional() }),
    client_info: z.object({ id: z.number().optional(), nonce: z.string().optional() }).default({}),
    connect_opts: z
      .object({ auth_token: z.string().optional(), pass: z.string().optional(), nkey: z.string().optional(), sig: z.string().optional() })
      .default({}),
  }),
});
export type CalloutRequest = z.infer<typeof Claims>['nats'];

/** Checks the server's signature; throws MALFORMED_MESSAGE for anything else. */
export const readCalloutRequest = (token: string): CalloutRequest => {
  const [header = '', body = '', signature = ''] = token.split('.');
  const parsed = Claims.safeParse(jsonOrUndefined(Buffer.from(body, 'base64url').toString('utf8')));
  const signed = parsed.success && verify(null, Buffer.from(`${header}.${body}`), publicKeyOf(parsed.data.iss), Buffer.from(signature, 'base64url'));
  if (!parsed.success || !signed || !parsed.data.iss.startsWith('N')) throw DsecError.of('MALFORMED_MESSAGE', 'not an authorization request of a nats-server');
  return parsed.data.nats;
};

/** Whether the client signed the nonce that the server gave it. */
export const hasSigned = (publicKey: string, nonce: string, signature: string): boolean => {
  const bytes = Buffer.from(signature, 'base64url');
  return bytes.length === 64 && verify(null, Buffer.from(nonce), publicKeyOf(publicKey), bytes);
};

export class CalloutSigner {
  readonly #key: KeyObject;
  readonly #issuer: string;

  constructor(seed: string, publicKey: string) {
    this.#key = privateKeyOf(seed);
    this.#issuer = publicKey;
  }

  /** The answer to a request: a token for the connection, or why there is none. */
  answer(request: CalloutRequest, decided: UserToken | { readonly error: string }, nowSeconds: number): string {
    const nats = 'error' in decided ? { error: decided.error } : { jwt: this.#userToken(request.user_nkey, decided, nowSeconds) };
    return this.#sign({ sub: request.user_nkey, aud: request.server_id.id, iat: nowSeconds, nats: { ...nats, type: 'authorization_response', version: 2 } });
  }

  #userToken(subject: string, { name, account, expiresAtSeconds, permissions, subscriptions }: UserToken, nowSeconds: number): string {
    const nats = {
      pub: { allow: permissions.publish },
      sub: { allow: permissions.subscribe },
      subs: subscriptions,
      data: -1,
      payload: -1,
      type: 'user',
      version: 2,
    };
    return this.#sign({ sub: subject, aud: account, name, iat: nowSeconds, exp: expiresAtSeconds, nats });
  }

  #sign(claims: object): string {
    const body = `${HEADER}.${part({ jti: randomUUID(), iss: this.#issuer, ...claims })}`;
    return `${body}.${sign(null, Buffer.from(body), this.#key).toString('base64url')}`;
  }
}
