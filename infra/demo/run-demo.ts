/** Frame of a demonstration: progress with time, Ctrl-C that cleans up, problems named one by one, exit code. */
import { toWireError } from '#bus/errors.ts';

export type DemoFrame = { readonly say: (line: string) => void; readonly signal: AbortSignal; readonly elapsedSeconds: () => number };

/** Runs it; resolves with what was not as it must be, which makes the exit code. */
export const main = async (demo: (frame: DemoFrame) => Promise<readonly string[]>): Promise<void> => {
  const startedAt = performance.now();
  const elapsedSeconds = (): number => (performance.now() - startedAt) / 1_000;
  const say = (line: string): void => void process.stderr.write(`[${elapsedSeconds().toFixed(1).padStart(5)} s] ${line}\n`);
  const interrupted = new AbortController();
  const codes = { SIGINT: 130, SIGTERM: 143 } as const;
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      if (!interrupted.signal.aborted) say(`${signal}: stopping; what was started is taken down first`);
      interrupted.abort(codes[signal]);
    });
  // Work that fails unheard must not end the process before what it started is taken down.
  process.on('unhandledRejection', (thrown) => {
    say(`failed beside the demonstration: ${toWireError(thrown).message}`);
    interrupted.abort(1);
  });
  try {
    const problems = await demo({ say, signal: interrupted.signal, elapsedSeconds });
    for (const problem of problems) say(`WRONG: ${problem}`);
    process.exitCode = problems.length === 0 ? 0 : 1;
  } catch (thrown) {
    if (interrupted.signal.aborted) {
      process.exitCode = interrupted.signal.reason as number;
      return;
    }
    const { code, message } = toWireError(thrown);
    say(`demo failed: ${code}: ${message}`);
    process.exitCode = 1;
  }
};

/** Ends with the work, or at once when the demonstration is interrupted. */
export const abortable = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const stop = () => reject(new Error('interrupted'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject);
  });
