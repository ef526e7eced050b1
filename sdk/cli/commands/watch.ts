/** `dsec watch`: every change of the project's sandboxes, as it happens. */
import type { Command as Cli } from 'commander';
import type { SandboxChange } from '../../watch.ts';
import { pairs, printJson, TablePrinter, time } from '../output.ts';
import { collect, pairsOf } from '../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';

type Flags = CommonFlags & { readonly label?: string[] };

export const registerWatch = (program: Cli): void => {
  withCommonOptions(
    program
      .command('watch')
      .description('show the sandboxes that are there, then every change, until it is interrupted')
      .option('-l, --label <KEY=VALUE>', 'only those with this label; repeatable, all must match', collect)
      .addHelpText(
        'after',
        '\nNothing is lost over a restart of the bus: what was missed is read from the histories.\n\nExamples:\n  dsec watch\n  dsec watch --label job=nightly --json | jq -c "[.id, .state.status]"\n',
      ),
  ).action((flags: Flags) =>
    act(flags, async (dsec) => {
      const table = new TablePrinter(['TIME', 'SANDBOX', 'VERSION', 'STATUS', 'WHAT', 'LABELS']);
      for await (const change of dsec.watch({ labels: pairsOf('label', flags.label) })) {
        if (flags.json) await printJson(change);
        else {
          await table.add(rowOf(change));
          await table.flush();
        }
      }
      return 0;
    }),
  );
};

const rowOf = ({ kind, id, version, state, events }: SandboxChange): readonly unknown[] => [
  time(kind === 'found' ? state.createdAt : Number(events[0]?.['at'])),
  id,
  version,
  state.status,
  kind === 'found' ? '-' : [...events.map(({ type }) => type), ...(state.stopReason ? [`(${state.stopReason})`] : [])].join(' '),
  pairs(state.spec.labels) || '-',
];
