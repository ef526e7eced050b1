/** Shows how a build goes, on standard error: one line that changes on a terminal, a line per step elsewhere. */
import ora from 'ora';
import type { BuildProgress, BuildStep } from '../sources/source.ts';

export type ProgressView = { show(progress: BuildProgress): void; succeed(line: string): void; fail(): void };

export const createProgressView = (title: string, stream: NodeJS.WriteStream = process.stderr): ProgressView =>
  stream.isTTY ? onTerminal(title, stream) : inLines(title, stream);

const onTerminal = (title: string, stream: NodeJS.WriteStream): ProgressView => {
  const spinner = ora({ text: title, stream, discardStdin: false }).start();
  const startedMs = performance.now();
  return {
    show: ({ step, detail }) => {
      const seconds = Math.floor((performance.now() - startedMs) / 1000);
      spinner.text = `${title}: ${step}, ${seconds} s  ${detail}`.slice(0, Math.max(20, stream.columns - 3));
    },
    succeed: (line) => void spinner.succeed(line),
    fail: () => void spinner.fail(title),
  };
};

/** For logs: the beginning of each step, and not every file of it. */
const inLines = (title: string, stream: NodeJS.WriteStream): ProgressView => {
  let shown: BuildStep | null = null;
  return {
    show: ({ step, detail }) => {
      if (step === shown) return;
      shown = step;
      stream.write(`${title}: ${step}: ${detail}\n`);
    },
    succeed: (line) => void stream.write(`${line}\n`),
    fail: () => {},
  };
};
