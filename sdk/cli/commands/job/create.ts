/** `dsec job create`: a job under a key of one's own. */
import type { Command as Cli } from 'commander';
import { OwnerLostPolicy } from '#bus/job/schema.ts';
import { RESOURCES } from '#bus/project/quota.ts';
import type { JobOptions } from '../../../trainer/jobs.ts';
import { amountsOf } from '../../amounts.ts';
import { printJson, printLine } from '../../output.ts';
import { collect, millisecondsOf, oneOf, pairsOf } from '../../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../../session.ts';

type CreateFlags = CommonFlags & {
  readonly life?: string;
  readonly lease?: string;
  readonly grace?: string;
  readonly onOwnerLost?: string;
  readonly label?: string[];
  readonly share?: string[];
  readonly title?: string;
};

export const registerCreate = (job: Cli): void => {
  withCommonOptions(
    job
      .command('create')
      .description('make a job under a key of your own; prints its id')
      .argument('<key>', 'the same key and options name the same job')
      .option('--title <text>', 'for people')
      .option('--life <seconds>', 'from now; no member lives longer (default: a day)')
      .option('--lease <seconds>', 'how long an owner is taken for living after its newest word (default: 60)')
      .option('--grace <seconds>', 'how long an owner may stay away after that (default: 0)')
      .option('--on-owner-lost <policy>', `then: ${OwnerLostPolicy.options.join(', ')} (default: pause)`)
      .option('--share <key=amount>', `most that its living sandboxes may use together, repeatable: ${RESOURCES.join(', ')}`, collect)
      .option('-l, --label <KEY=VALUE>', 'label of the job; repeatable', collect)
      .addHelpText('after', '\nExample:\n  dsec job create nightly --life 7200 --on-owner-lost stop --share sandboxes=40\n'),
  ).action((key: string, flags: CreateFlags) =>
    act(flags, async (dsec) => {
      const spec = {
        title: flags.title,
        lifeMs: millisecondsOf('life', flags.life),
        leaseMs: millisecondsOf('lease', flags.lease),
        graceMs: millisecondsOf('grace', flags.grace),
        onOwnerLost: oneOf('on-owner-lost', OwnerLostPolicy.options, flags.onOwnerLost),
        share: flags.share && amountsOf('share', RESOURCES, flags.share),
        labels: pairsOf('label', flags.label),
      };
      const given = Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)) as JobOptions;
      const made = await dsec.jobs.create(key, given);
      await (flags.json ? printJson(made) : printLine(made.state.id));
      return 0;
    }),
  );
};
