/** Answers `GET /healthz`, `/readyz` and `/metrics`, and nothing else. Plain HTTP, for supervisors and scrapers beside the process. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DsecError } from '#bus/errors.ts';
import { OPS_LIMITS } from './limits.ts';

export type Answer = { readonly status: number; readonly type: string; readonly body: string };
export type Answers = Readonly<Record<string, () => Promise<Answer>>>;
export type OpsServer = { /** `host:port`, with the real port. */ readonly address: string; close(): Promise<void> };

export const json = (status: number, value: unknown): Answer => ({ status, type: 'application/json', body: `${JSON.stringify(value)}\n` });

/** HOST_UNFIT when the address cannot be had. */
export const startOpsServer = async (listen: string, answers: Answers): Promise<OpsServer> => {
  const [, host = '', port = ''] = /^\[?([^\]]*)\]?:(\d+)$/.exec(listen) ?? [];
  const server = createServer({ maxHeaderSize: OPS_LIMITS.headBytes, requestTimeout: OPS_LIMITS.requestMs, headersTimeout: OPS_LIMITS.requestMs });
  server.maxConnections = OPS_LIMITS.requestsInFlight * 2;
  let inFlight = 0;
  server.on('request', (request, response) => {
    if (inFlight >= OPS_LIMITS.requestsInFlight) return write(response, json(503, { error: 'too many requests at a time; ask again' }));
    inFlight += 1;
    void answerTo(request, answers)
      .then((answer) => write(response, answer))
      .finally(() => {
        inFlight -= 1;
      });
  });
  await listening(server, host, Number(port), listen);
  const { address, port: real, family } = server.address() as AddressInfo;
  return {
    address: family === 'IPv6' ? `[${address}]:${real}` : `${address}:${real}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

const answerTo = async ({ method, url }: IncomingMessage, answers: Answers): Promise<Answer> => {
  const path = (url ?? '').split('?')[0] ?? '';
  const answer = Object.hasOwn(answers, path) ? answers[path] : undefined;
  if (!answer) return json(404, { error: `there is no such page; known: ${Object.keys(answers).join(', ')}` });
  if (method !== 'GET' && method !== 'HEAD') return json(405, { error: 'only GET is answered' });
  try {
    return await answer();
  } catch (thrown) {
    return json(500, { error: thrown instanceof Error ? thrown.message : String(thrown) });
  }
};

const write = (response: ServerResponse, { status, type, body }: Answer): void => {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body), 'cache-control': 'no-store' });
  response.end(response.req.method === 'HEAD' ? undefined : body);
};

const listening = (server: Server, host: string, port: number, listen: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(DsecError.of('HOST_UNFIT', `opsListen ${listen} cannot be had (${cause.code}); name another address, port 0 for any free one, or off`, { cause })),
    );
    server.listen(port, host, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
