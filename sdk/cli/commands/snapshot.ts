/** `dsec snapshot`: makes a snapshot of a sandbox; `ls` and `rm` are about the project's snapshots. */
import type { Command as Cli } from 'commander';
import { DsecError } from '#bus/errors.ts';
import type { SnapshotView } from '#bus/sandbox/snapshot.ts';
import type { DsecClient } from '../../client.ts';
import { complain, printJson, printLine, printTable, time } from '../output.ts';
import { collect, millisecondsOf } from '../parse.ts';
import { act, type CommonFlags, withCommonOptions } from '../session.ts';

type Flags = CommonFlags & { readonly name?: string; readonly scrub?: boolean; readonly scrubRule?: string[]; readonly timeout?: string };

export const registerSnapshot = (program: Cli): void => {
  const snapshot = withCommonOptions(
    program
      .command('snapshot')
      .description('make a snapshot of what a sandbox has written; it stands still for a moment and goes on')
      .argument('<sandbox>', 'id of the sandbox')
      .option('--name <name>', 'what it is called in the project; random when absent')
      .option('--scrub', 'leave out temporary files, caches, logs, histories and keys')
      .option('--scrub-rule <pattern>', 'leave out what matches, like /w/**/*.key; repeatable', collect)
      .option('--timeout <seconds>', 'how long to wait')
      .addHelpText('after', HELP),
  );
  snapshot.action((id: string, flags: Flags) => act(flags, (dsec) => take(dsec, id, flags)));
  withCommonOptions(
    snapshot
      .command('ls')
      .description("list the project's snapshots")
      .option('--sandbox <id>', 'only those of one sandbox')
      .addHelpText('after', '\nExamples:\n  dsec snapshot ls\n  dsec snapshot ls --json --sandbox sb-0-…\n'),
  ).action((flags: CommonFlags & { readonly sandbox?: string }) => act(flags, (dsec) => list(dsec, flags)));
  withCommonOptions(
    snapshot
      .command('rm')
      .description('take names away; sandboxes that stand on the layers go on')
      .argument('<names...>')
      .addHelpText('after', '\nExamples:\n  dsec snapshot rm fixed-deps\n'),
  ).action((names: string[], flags: CommonFlags) => act(flags, (dsec) => remove(dsec, names, flags)));
};

const HELP = `
Prints the snapshot's name. Sandboxes start from it with \`dsec run @NAME\`, on any node. Unchanged content is not stored again.

Examples:
  dsec snapshot sb-0-…
  dsec snapshot sb-0-… --name fixed-deps --scrub
  dsec run @fixed-deps -- make test
  dsec snapshot ls
`;

const take = async (dsec: DsecClient, id: string, flags: Flags): Promise<number> => {
  if (flags.scrub && flags.scrubRule) throw DsecError.of('INVALID_ARGUMENT', '--scrub and --scrub-rule: give one of them');
  const made = await dsec.sandbox(id).snapshot({
    snapshotId: flags.name,
    scrub: flags.scrub ? 'standard' : flags.scrubRule,
    timeoutMs: millisecondsOf('timeout', flags.timeout),
  });
  if (flags.json) {
    await printJson(made);
    return 0;
  }
  const { files, storedBytes, sharedBytes, frozenMs, removedCount, removed } = made.facts;
  await complain(
    `${files} files, ${mebibytes(storedBytes)} MiB stored, ${mebibytes(sharedBytes)} MiB shared; the sandbox stood still for ${Math.round(frozenMs)} ms`,
  );
  for (const { rule, path } of removed) await complain(`left out ${path} (${rule})`);
  if (removedCount > removed.length) await complain(`left out ${removedCount - removed.length} more`);
  await printLine(made.snapshotId);
  return 0;
};

const list = async (dsec: DsecClient, flags: CommonFlags & { readonly sandbox?: string }): Promise<number> => {
  const found: SnapshotView[] = [];
  for await (const snapshot of dsec.snapshots({ sandboxId: flags.sandbox })) {
    if (flags.json) await printJson(snapshot);
    else found.push(snapshot);
  }
  if (flags.json) return 0;
  const rows = found.map(({ id, at, sandboxId, layers, facts }) => [id, time(at), sandboxId, String(layers.length), mebibytes(facts.storedBytes)]);
  await printTable(['NAME', 'MADE', 'SANDBOX', 'LAYERS', 'STORED MiB'], rows);
  return 0;
};

const remove = async (dsec: DsecClient, names: readonly string[], flags: CommonFlags): Promise<number> => {
  for (const name of names) {
    if (!(await dsec.deleteSnapshot(name)))
      throw DsecError.of('SNAPSHOT_NOT_FOUND', `there is no snapshot ${name} in project ${dsec.project}; see dsec snapshot ls`);
    await (flags.json ? printJson({ name, done: 'deleted' }) : printLine(name));
  }
  return 0;
};

const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);
