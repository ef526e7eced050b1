/** `dsec node …`: the nodes of the cluster, for operators. Uses the operator's key of the configuration's credentials. */
import type { Command } from 'commander';
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { EdgeName } from '#bus/ids.ts';
import { type Config, shardsOf } from '../config.ts';
import { plainTable } from '../terminal/plain-table.ts';
import { cordonNode, drainNode, listNodes, type NodeView, uncordonNode } from './nodes.ts';
import { asOperator } from './operator.ts';

export type NodeCommandsContext = {
  /** Asked for when a command runs. */
  readonly config: () => Config;
};

export const registerNodeCommands = (program: Command, context: NodeCommandsContext): void => {
  const node = program.command('node').description('look at the nodes of the cluster, keep new sandboxes from one, empty one');
  registerList(node, context);
  registerCordon(node, context);
  registerDrain(node, context);
};

const registerList = (node: Command, { config }: NodeCommandsContext): void => {
  node
    .command('ls')
    .description('list the nodes with their state, load and what speaks against them')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  dsec node ls\n  DSEC_CONFIG=/etc/dsec/operator.json dsec node ls --json | jq -r ".[] | select(.conditions != []) | .name"\n',
    )
    .action(async (flags: { json?: true }) => {
      const nodes = await asOperator(config(), (operator) => listNodes(operator));
      process.stdout.write(flags.json ? `${JSON.stringify(nodes, null, 2)}\n` : tableOf(nodes));
    });
};

const registerCordon = (node: Command, { config }: NodeCommandsContext): void => {
  node
    .command('cordon')
    .description('send no new sandboxes to a node; those that it has go on')
    .argument('<node>', 'name of the node')
    .option('--reason <text>', 'why, for those who look', 'cordoned by an operator')
    .addHelpText('after', '\nExample:\n  dsec node cordon edge-7 --reason "disk is replaced on Friday"\n')
    .action(async (name: string, flags: { reason: string }) => {
      const done = await asOperator(config(), (operator) => cordonNode(operator, edgeNamed(name), flags.reason));
      say(done === 'done' ? `${name} is cordoned; dsec node uncordon ${name} takes it back` : `${name} was cordoned already`);
    });
  node
    .command('uncordon')
    .description('send new sandboxes to a node again')
    .argument('<node>', 'name of the node')
    .addHelpText('after', '\nExample:\n  dsec node uncordon edge-7\n')
    .action(async (name: string) => {
      const done = await asOperator(config(), (operator) => uncordonNode(operator, edgeNamed(name)));
      say(done === 'done' ? `${name} takes sandboxes again` : `${name} was not cordoned`);
    });
};

const registerDrain = (node: Command, { config }: NodeCommandsContext): void => {
  node
    .command('drain')
    .description('cordon a node and wait until it has no sandboxes; Ctrl-C leaves it cordoned')
    .argument('<node>', 'name of the node')
    .option('--stop', 'stop its sandboxes at once instead of waiting for their ends')
    .option('--deadline <seconds>', 'stop what is left after this time')
    .option('--reason <text>', 'why, for those who look', 'drained by an operator')
    .addHelpText('after', '\nExamples:\n  dsec node drain edge-7\n  dsec node drain edge-7 --deadline 3600\n  dsec node drain edge-7 --stop\n')
    .action(async (name: string, flags: { stop?: true; deadline?: string; reason: string }) => {
      const stopAfterMs = flags.stop ? 0 : flags.deadline === undefined ? null : secondsOf(flags.deadline) * 1_000;
      const interrupted = new AbortController();
      process.once('SIGINT', () => interrupted.abort());
      const settings = config();
      let shown: string | undefined;
      const onProgress = (left: number, stopping: boolean): void => {
        const line = `${name}: ${left} sandboxes left${stopping && left > 0 ? ', being stopped' : ''}`;
        if (line !== shown) say(line);
        shown = line;
      };
      await asOperator(settings, (operator) =>
        drainNode(operator, { edge: edgeNamed(name), shards: shardsOf(settings), reason: flags.reason, stopAfterMs, signal: interrupted.signal, onProgress }),
      );
      say(`${name} is empty and cordoned`);
    });
};

const say = (line: string): void => void process.stderr.write(`${line}\n`);

const edgeNamed = (name: string): EdgeName => {
  const parsed = EdgeName.safeParse(name);
  if (!parsed.success) throw invalid('INVALID_ARGUMENT', 'node', parsed.error);
  return parsed.data;
};

const secondsOf = (text: string): number => {
  const seconds = Number(text);
  if (!Number.isFinite(seconds) || seconds < 0) throw DsecError.of('INVALID_ARGUMENT', `--deadline: ${text} is not a number of seconds`);
  return seconds;
};

const tableOf = (nodes: readonly NodeView[]): string => {
  if (nodes.length === 0) return 'no nodes; start one with "dsec edge --config …" or "dsec up"\n';
  const { table, text } = plainTable({ head: ['NODE', 'STATUS', 'GEN', 'SANDBOXES', 'MEMORY MiB', 'CORDONED', 'CONDITIONS'] });
  for (const n of nodes)
    table.push([
      n.name,
      n.status,
      n.generation,
      `${n.sandboxes ?? '?'}/${n.sandboxesMax}`,
      `${n.memoryMiB ?? '?'}/${n.memoryMiBMax}`,
      n.cordoned ?? '-',
      n.conditions.join(',') || '-',
    ]);
  return `${text()}\n`;
};
