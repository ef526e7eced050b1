/** Frame of a demonstration: progress with time, Ctrl-C that cleans up, problems named one by one, exit code. */
import { toWireError } from '#bus/errors.ts';

export type DemoFrame = { readonly say: (line: string) => void; readonly signal: AbortSignal };

/** Runs it; resolves with what was not as it must be, which makes the exit code. */
export const main = async (demo: (frame: DemoFrame) => Promise<readonly string[]>): Promise<void> => {
  const startedAt = performance.now();
  const say = (line: string): void => {
    process.stderr.write(`[${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(5)} s] ${line}\n`);
  };
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort());
  try {
    const problems = await demo({ say, signal: interrupted.signal });
    for (const problem of problems) say(`WRONG: ${problem}`);
    process.exitCode = problems.length === 0 ? 0 : 1;
  } catch (thrown) {
    const { code, message } = toWireError(thrown);
    say(`demo failed: ${code}: ${message}`);
    process.exitCode = 1;
  }
};
