/**
 * What an agent's loop says to the platform, from inside its worker sandbox: a model turn, a step in one of the agent's sandboxes,
 * a snapshot, the result. Plain JavaScript without dependencies, so that any image with Node can run it; any other language may
 * speak the same lines (bus-schemas/rollout/worker-protocol.ts). @paper §6.2
 *
 * stdout belongs to the protocol; what a scaffold prints goes to stderr. A worker that is lost is made anew and given the same
 * answers again: between two requests it must do the same, so clocks and chance belong into the agent's sandboxes.
 */
import { createInterface } from 'node:readline';
import process from 'node:process';

const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]();

const next = async () => {
  const { value, done } = await lines.next();
  if (done) process.exit(0); // the platform has closed the episode
  return JSON.parse(value);
};

/** One request at a time: the answer belongs to the newest one. */
let turn = Promise.resolve();
const ask = (request) => {
  const asked = turn.then(async () => {
    process.stdout.write(`${JSON.stringify(request)}\n`);
    const answer = await next();
    if (answer.type === 'refused') throw Object.assign(new Error(answer.error.message), answer.error);
    return answer;
  });
  turn = asked.catch(() => {});
  return asked;
};

export const begin = async () => {
  const { task, rollout, attempt, sandboxes } = await next();
  return {
    task,
    rollout,
    attempt,
    sandboxes,
    /** A model turn; resolves with whatever the trainer answers, however long that takes. */
    ask: async (request) => (await ask({ type: 'turn', request })).answer,
    /** Runs a program (argv) or a script (string) in one of the agent's sandboxes. A failing program is a result. */
    exec: (program, options = {}) => {
      const { sandbox = sandboxes[0], ...rest } = options;
      return ask({ type: 'exec', sandbox, ...(Array.isArray(program) ? { argv: program } : { shell: program }), ...rest });
    },
    snapshot: async (sandbox = sandboxes[0]) => ask({ type: 'snapshot', sandbox }),
    /** The last word. The process should end after it. */
    finish: async ({ reward = null, result = null } = {}) => {
      await turn;
      await new Promise((resolve) => process.stdout.write(`${JSON.stringify({ type: 'result', reward, result })}\n`, resolve));
    },
  };
};
