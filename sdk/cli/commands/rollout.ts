/** `dsec rollout …`: one agent's episode in a job. @paper §6.2 */
import type { Command as Cli } from 'commander';
import type { DsecClient } from '../../client.ts';
import { printJson, printLine, printTable, time } from '../output.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';

export const registerRollout = (program: Cli): void => {
  const rollout = program.command('rollout').description('one agent’s episode in a job');
  withCommonOptions(
    rollout.command('show').description('where it stands').argument('<rollout>', 'id').addHelpText('after', '\nExample:\n  dsec rollout show ro-0-…\n'),
  ).action((id: string, flags: CommonFlags) => act(flags, (dsec) => show(dsec, id, flags)));
  withCommonOptions(
    rollout
      .command('trajectory')
      .description('its events, one JSON document per line')
      .argument('<rollout>', 'id')
      .addHelpText('after', '\nExample:\n  dsec rollout trajectory ro-0-… | jq .type\n'),
  ).action((id: string, flags: CommonFlags) =>
    act(flags, async (dsec) => {
      for await (const record of dsec.jobs.trajectory(id)) await printJson(record);
      return 0;
    }),
  );
  withCommonOptions(
    rollout
      .command('stop')
      .description('end it and its sandboxes')
      .argument('<rollout>', 'id')
      .addHelpText('after', '\nExample:\n  dsec rollout stop ro-0-…\n'),
  ).action((id: string, flags: CommonFlags) =>
    act(flags, async (dsec) => {
      await dsec.jobs.stopRollout(id);
      await (flags.json ? printJson({ id, done: 'recorded' }) : printLine(id));
      return 0;
    }),
  );
};

const show = async (dsec: DsecClient, id: string, flags: CommonFlags): Promise<number> => {
  const view = await dsec.jobs.rollout(id);
  if (flags.json) {
    await printJson(view);
    return 0;
  }
  const { state } = view;
  const error = state.error ? `${state.error.code}: ${state.error.message} (fault: ${state.error.fault})` : '-';
  await printTable(
    ['ROLLOUT', id],
    [
      ['status', state.status],
      ['job', state.jobId],
      ['key', state.key],
      ['worker', `${state.worker ?? '-'}${state.attempt > 0 ? ` (the ${state.attempt + 1}th)` : ''}`],
      ...Object.entries(state.sandboxes).map(([role, sandbox]) => [role, sandbox]),
      [
        'turns, steps',
        `${state.turns}, ${state.steps}${state.status === 'asking' ? `; turn ${state.open?.turn} waits for an answer since ${time(state.open?.askedAt ?? 0)}` : ''}`,
      ],
      ['outcome', state.outcome ?? '-'],
      ['reward', state.reward ?? '-'],
      ['error', error],
    ],
  );
  return 0;
};
