#!/usr/bin/env node
/**
 * Runs any agent scaffold in a terminal of its own and stands between it and the platform: the scaffold makes HTTP requests to
 * the worker's own loopback, the worker makes protocol lines of them. What the scaffold prints is kept in the worker's stderr log.
 * @paper §6.2
 *
 *   scaffold.mjs -- PROGRAM [ARGUMENT]...
 *
 * The scaffold finds the address in DSEC_EPISODE_URL:
 *   POST /task                         → {task, rollout, attempt, sandboxes}
 *   POST /turn      any JSON           → the trainer's answer, however long it takes
 *   POST /exec      {program, sandbox?, stdin?, env?, cwd?, user?, timeoutMs?} → the step's result
 *   POST /snapshot  {sandbox?}         → {layer, error}
 *   POST /result    {reward, result}   → {}
 * What is refused is 4xx with {message, code}; an answer that took long is 200 with the same body. A pause stops the scaffold's
 * clock of work but not its wall clock: it should wait without a time-out of its own.
 */
import { closeSync, constants, openSync } from 'node:fs';
import { createServer } from 'node:http';
import process from 'node:process';
import pty from 'node-pty';
import { begin } from './worker.mjs';

const BODY_BYTES_MAX = 393_216;
/** A client that hears nothing for minutes gives up, and a turn may take hours: after this long an answer begins, with blanks. */
const BLANK_EVERY_MS = 15_000;
const TERMINAL = { name: 'xterm-256color', cols: 120, rows: 40 };

const argv = process.argv.slice(process.argv[2] === '--' ? 3 : 2);
if (argv.length === 0) {
  process.stderr.write('scaffold: name the program to run: scaffold.mjs -- PROGRAM [ARGUMENT]...\n');
  process.exit(2);
}
const episode = await begin();
let result;

const routes = {
  '/task': async () => ({ task: episode.task, rollout: episode.rollout, attempt: episode.attempt, sandboxes: episode.sandboxes }),
  '/turn': (request) => episode.ask(request),
  '/exec': ({ program, ...options }) => episode.exec(program, options),
  '/snapshot': ({ sandbox }) => episode.snapshot(sandbox),
  '/result': async (given) => {
    result = given;
    return {};
  },
};

const bodyOf = async (request) => {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) throw Object.assign(new Error(`a body has at most ${BODY_BYTES_MAX} bytes; send large data by reference`), { status: 413 });
    chunks.push(chunk);
  }
  return length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString('utf8'));
};

const server = createServer(async (request, response) => {
  const json = { 'content-type': 'application/json' };
  const blanks = setInterval(() => {
    if (!response.headersSent) response.writeHead(200, json);
    response.write(' ');
  }, BLANK_EVERY_MS);
  const answer = (status, body) => {
    clearInterval(blanks);
    if (!response.headersSent) response.writeHead(status, json);
    response.end(JSON.stringify(body ?? null));
  };
  const route = request.method === 'POST' ? routes[request.url ?? ''] : undefined;
  if (!route) return answer(404, { message: `there is no ${request.method} ${request.url}; known: ${Object.keys(routes).join(', ')}` });
  try {
    answer(200, await route(await bodyOf(request)));
  } catch (error) {
    answer(error.status ?? 400, { message: error.message, code: error.code });
  }
});
server.requestTimeout = 0; // a turn takes as long as its trainer is away
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));

const terminal = pty.spawn(argv[0], argv.slice(1), {
  ...TERMINAL,
  cwd: process.cwd(),
  env: { ...process.env, DSEC_EPISODE_URL: `http://127.0.0.1:${server.address().port}` },
});
// The slave is held open until the end is known: what was printed just before the exit would be lost with its last holder.
const slave = openSync(terminal.ptsName ?? terminal._pty, constants.O_RDWR | constants.O_NOCTTY);
terminal.onData((text) => process.stderr.write(text));
terminal.onExit(async ({ exitCode, signal }) => {
  closeSync(slave);
  server.closeAllConnections();
  server.close();
  if (signal || !result) process.stderr.write(`scaffold: ended with ${signal ? `signal ${signal}` : exitCode} and ${result ? 'a' : 'no'} result\n`);
  if (result && !signal) await episode.finish(result);
  process.exit(signal ? 128 + signal : exitCode);
});
