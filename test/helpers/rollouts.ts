/** Workers small enough for the small base layer: a shell script that speaks the worker protocol. */
import type { RolloutOrder } from '#sdk/mod.ts';

/** Asks `turns` times what to run, runs it in the agent's sandbox, counts each run there, and finishes with reward 1. */
export const scriptedWorker = (turns: number): string => `
read -r start
i=0
while [ $i -lt ${turns} ]; do
  echo '{"type":"turn","request":{"n":'$i'}}'
  read -r answer
  command=$(echo "$answer" | sed 's/.*"answer":"\\([^"]*\\)".*/\\1/')
  echo '{"type":"exec","sandbox":"agent","shell":"echo '$i' >> /w/count; '"$command"'"}'
  read -r done
  i=$((i+1))
done
echo '{"type":"exec","sandbox":"agent","shell":"sort /w/count | uniq -c | wc -l; wc -l < /w/count"}'
read -r counted
out=$(echo "$counted" | sed 's/.*"stdout":"\\([^"]*\\)".*/\\1/')
echo '{"type":"result","reward":1,"result":{"counted":"'"$out"'"}}'
`;

export const scriptedRollout = (key: string, turns: number, over: Partial<RolloutOrder['spec']> = {}): RolloutOrder => ({
  key,
  spec: {
    worker: { sandbox: { image: 'small', limits: { memoryMiB: 32 } }, program: { argv: ['sh', '-c', scriptedWorker(turns)] } },
    sandboxes: { agent: { image: 'small', limits: { memoryMiB: 32 } } },
    ...over,
  },
});
