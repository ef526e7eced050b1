/** `dsec job pause|resume|stop`: where every member is to be brought. */
import type { Command as Cli } from 'commander';
import type { JobWait, MembersByStatus } from '../../../trainer/jobs.ts';
import { complain, printJson, printLine } from '../../output.ts';
import { millisecondsOf } from '../../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../../session.ts';
import { countsOf } from './counts.ts';

type Goal = { readonly name: 'pause' | 'resume' | 'stop'; readonly past: string; readonly description: string };
export const GOALS: readonly Goal[] = [
  { name: 'pause', past: 'paused', description: 'freeze every member and give its memory back' },
  { name: 'resume', past: 'resumed', description: 'let every member go on' },
  { name: 'stop', past: 'ended', description: 'end the job with every member and rollout' },
];

const sayHowFar = (members: MembersByStatus): void => {
  const counts = Object.entries(members).map(([status, n]) => `${n} ${status}`);
  void complain(`${counts.join(', ')} so far`).catch(() => {});
};

export const registerGoal = (job: Cli, { name, past, description }: Goal): void => {
  withCommonOptions(
    job
      .command(name)
      .description(description)
      .argument('<job>', 'id')
      .option('--no-wait', 'return as soon as the goal is recorded')
      .option('--timeout <seconds>', 'how long to wait (default: 600)')
      .addHelpText('after', `\nRepeating it is harmless. Interrupted, what was recorded goes on.\n\nExample:\n  dsec job ${name} jb-0-…\n`),
  ).action((id: string, flags: CommonFlags & { wait: boolean; timeout?: string }) =>
    act(flags, async (dsec) => {
      const stop = new AbortController();
      const interrupt = (): void => stop.abort();
      process.once('SIGINT', interrupt);
      try {
        const options: JobWait = { wait: flags.wait, timeoutMs: millisecondsOf('timeout', flags.timeout), signal: stop.signal, onProgress: sayHowFar };
        const counts = await dsec.jobs[name](id, options);
        if (flags.json) await printJson({ id, done: flags.wait ? past : 'recorded', counts });
        else await printLine(counts ? `${id} ${past}: ${countsOf(counts)}` : id);
        return counts && counts.failed + counts.left > 0 ? EXIT_PARTLY : 0;
      } finally {
        process.off('SIGINT', interrupt);
      }
    }),
  );
};

/** Some members did not come to the goal. */
const EXIT_PARTLY = 9;
