/** `dsec audit`: who did what in the project, from its log. */
import type { Command as Cli } from 'commander';
import { ACTOR_KINDS } from '#bus/subjects.ts';
import { complain, printJson, TablePrinter, time } from '../output.ts';
import { numberOf, oneOf, timeOf } from '../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';

type AuditFlags = CommonFlags & { readonly since: string; readonly until?: string; readonly by?: string; readonly kind?: string; readonly limit: string };

export const registerAudit = (program: Cli): void => {
  withCommonOptions(
    program
      .command('audit')
      .description('who did what in the project, oldest first: every commit that its log holds')
      .option('--since <when>', 'from when on: 10m, 2h, 3d ago, or a time', '1h')
      .option('--until <when>', 'until when; now when left out')
      .option('--by <principal>', 'only what <project>/<name> did')
      .option('--kind <kind>', `only of one kind: ${ACTOR_KINDS.join(', ')}`)
      .option('--limit <n>', 'most records', '1000')
      .addHelpText(
        'after',
        '\nExamples:\n  dsec audit --since 10m\n  dsec audit --since 7d --kind project --json\n  dsec audit --by default/bot --since 2026-01-31T12:00:00Z\n',
      ),
  ).action((flags: AuditFlags) =>
    act(flags, async (dsec) => {
      const limit = numberOf('limit', flags.limit) ?? Number.POSITIVE_INFINITY;
      const [since, until] = [timeOf('since', flags.since, Date.now()), timeOf('until', flags.until, Date.now())];
      const table = new TablePrinter(['AT', 'PRINCIPAL', 'WHAT', 'OF']);
      let shown = 0;
      for await (const record of dsec.admin.audit({ since, until, principal: flags.by, kind: oneOf('kind', ACTOR_KINDS, flags.kind) })) {
        if (shown >= limit) {
          await complain(`the first ${limit}; the next with --since ${time(record.storedAt)}`);
          break;
        }
        shown += 1;
        if (flags.json) await printJson(record);
        else await table.add([time(record.storedAt), record.principal, record.events.join(' '), `${record.kind} ${record.actorId}`]);
      }
      if (!flags.json) await table.flush();
      return 0;
    }),
  );
};
