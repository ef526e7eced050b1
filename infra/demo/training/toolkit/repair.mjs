/**
 * The agent of the training example: a scaffold that finds a library broken, looks at which of its own tests fail, asks the model
 * what to do, does it, and looks again. Everything it runs, it runs in the agent's sandbox, one counted step after another.
 */
import { request } from 'node:http';
import process from 'node:process';

/** Without a time-out: a turn takes as long as its trainer is away, and a paused sandbox wakes up hours later. */
const call = (path, body) =>
  new Promise((resolve, reject) => {
    const sent = request(`${process.env.DSEC_EPISODE_URL}${path}`, { method: 'POST' }, async (response) => {
      let text = '';
      for await (const chunk of response.setEncoding('utf8')) text += chunk;
      const answer = JSON.parse(text);
      if (response.statusCode === 200) resolve(answer);
      else reject(new Error(`${path}: ${answer.message}`));
    });
    sent.on('error', reject).end(JSON.stringify(body ?? {}));
  });

let steps = 0;
/** Leaves one line per run in a file of the sandbox: what ran twice would show. */
const run = async (script) => {
  steps += 1;
  const done = await call('/exec', { program: `echo ${steps} >> /var/lib/steps; cd ${task.directory} && ${script}` });
  if (done.error) throw new Error(`step ${steps}: ${done.error.code}: ${done.error.message}`);
  process.stdout.write(`step ${steps}: ${script.slice(0, 60)} -> ${done.exitCode}\r\n`);
  return done;
};
const failingTests = ({ stdout }) => [...stdout.matchAll(/^FAILED (.*)!$/gm)].map((match) => match[1]).sort();

const { task } = await call('/task');
await run(task.breakIt);
let turns = 0;
let failing = failingTests(await run(task.test));
while (failing.length > 0 && turns < task.maxTurns) {
  const { action } = await call('/turn', { failing: failing.slice(0, 4), failingCount: failing.length, actions: task.actions.length, turn: turns });
  await run(task.actions[action] ?? 'true');
  failing = failingTests(await run(task.test));
  turns += 1;
}
const isSolved = failing.length === 0;
steps += 1;
const counted = await call('/exec', { program: `echo ${steps} >> /var/lib/steps; sort -n /var/lib/steps | tr '\\n' ' '` });
await call('/result', {
  reward: isSolved ? 1 - (turns - 1) / task.maxTurns : 0,
  result: { isSolved, turns, steps, ran: counted.stdout.trim().split(' ').map(Number) },
});
