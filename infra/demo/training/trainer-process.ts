/**
 * The trainer as a process of its own, to be killed and started again: everything it needs is named on its command line.
 *
 *   trainer-process.mjs CONTEXT_FILE JOB_ID POLICY_FILE [THINK_MS]
 *
 * Prints one JSON line per thing that happened.
 */
import { toWireError } from '#bus/errors.ts';
import { connect } from '#sdk/mod.ts';
import { openPolicy, train } from './train.ts';

const say = (line: object): void => {
  process.stdout.write(`${JSON.stringify(line)}\n`);
};

const main = async ([contextFile, jobId, policyFile, thinkMs]: readonly string[]): Promise<void> => {
  if (!contextFile || !jobId || !policyFile) throw new Error('usage: trainer-process CONTEXT_FILE JOB_ID POLICY_FILE [THINK_MS]');
  await using dsec = await connect({ contextFile });
  await using trainer = await dsec.attachJob(jobId, { takeover: true });
  say({ event: 'attached', epoch: trainer.epoch });
  await train({
    trainer,
    policy: openPolicy(policyFile),
    policyFile,
    thinkMs: Number(thinkMs ?? 0),
    onTurn: ({ rolloutId, turn }) => say({ event: 'turn', rolloutId, turn }),
    onResult: ({ rolloutId, outcome, reward, fault }) => say({ event: 'result', rolloutId, outcome, reward, fault }),
  });
  say({ event: 'finished' });
};

main(process.argv.slice(2)).catch((thrown: unknown) => {
  const { code, message } = toWireError(thrown);
  process.stderr.write(`trainer: ${code}: ${message}\n`);
  process.exitCode = 1;
});
