/** Six ways to break a real library, each noticed by tests of its own, and what repairs each: the tasks that the policy learns. */
import type { RolloutOrder } from '#sdk/mod.ts';

type Edit = { readonly file: string; readonly right: string; readonly wrong: string };

const EDITS: readonly Edit[] = [
  { file: 'base64-vlq.js', right: 'VLQ_BASE_SHIFT = 5;', wrong: 'VLQ_BASE_SHIFT = 4;' },
  { file: 'array-set.js', right: '|| aAllowDuplicates', wrong: '\\&\\& aAllowDuplicates' },
  { file: 'util.js', right: "part === '..'", wrong: "part === '...'" },
  { file: 'source-node.js', right: 'this.children.push(aChunk)', wrong: 'this.children.unshift(aChunk)' },
  { file: 'binary-search.js', right: 'aHigh - mid > 1', wrong: 'aHigh - mid > 2' },
  { file: 'base64.js', right: 'charToIntMap\\[ch\\] = index;', wrong: 'charToIntMap[ch] = index + 1;' },
];
export const TASK_COUNT = EDITS.length;
export const MAX_TURNS = 4;

const sed = (file: string, from: string, to: string): string => `sed -i "s/${escaped(from)}/${to}/" lib/source-map/${file}`;
const escaped = (text: string): string =>
  text
    .replace(/^\\&\\&/, '&&')
    .replace(/\.\./g, '\\.\\.')
    .replace(/(?<!\\)\[/g, '\\[')
    .replace(/(?<!\\)\]/g, '\\]');
/** In sed's replacement brackets stand for themselves, and an ampersand has to be quoted. */
const replacement = (text: string): string => text.replaceAll('\\[', '[').replaceAll('\\]', ']');

export type TrainingImages = { readonly base: string; readonly workspace: string; readonly worker: string };

/** One episode: the library broken in way `bug`. Every repair is among the actions; which one helps is what there is to learn. */
export const repairRollout = (images: TrainingImages, bug: number, key: string): RolloutOrder => {
  const edit = EDITS[bug % TASK_COUNT] as Edit;
  return {
    key,
    spec: {
      group: `bug-${bug % TASK_COUNT}`,
      task: {
        directory: '/workspace/source-map',
        test: 'node test/run-tests.js',
        breakIt: sed(edit.file, edit.right, edit.wrong),
        actions: EDITS.map(({ file, right, wrong }) => sed(file, wrong, replacement(right))),
        maxTurns: MAX_TURNS,
      },
      worker: {
        sandbox: { image: images.base, toolkits: [images.worker], limits: { memoryMiB: 256, pids: 64 } },
        program: { argv: ['node', '/opt/dsec-worker/scaffold.mjs', '--', 'node', '/opt/dsec-training/repair.mjs'] },
      },
      sandboxes: { agent: { image: images.base, workspaces: [images.workspace], limits: { memoryMiB: 256, pids: 64 } } },
    },
  };
};
