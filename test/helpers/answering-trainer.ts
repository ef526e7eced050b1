/**
 * A trainer as a process of its own, to be killed: answers every turn of a job with a command, after a while to think.
 *
 *   answering-trainer.mjs CONTEXT_FILE JOB_ID THINK_MS
 */
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from '#sdk/mod.ts';

const [contextFile, jobId, thinkMs] = process.argv.slice(2);
await using dsec = await connect({ contextFile });
await using trainer = await dsec.attachJob(jobId as string, { takeover: true });
process.stdout.write('{"event":"attached"}\n');
for await (const turn of trainer.turns()) {
  process.stdout.write('{"event":"turn"}\n');
  await delay(Number(thinkMs));
  await turn.answer(`echo turn-${turn.turn}`);
}
process.stdout.write('{"event":"finished"}\n');
