/** A finished command as one JSON document. */
import type { ExecResult } from '../exec/exec-result.ts';
import { printJson } from './output.ts';
import { exitCodeOf } from './stream-command.ts';

/** Resolves with the exit code for this process. */
export const printResult = async (sandboxId: string, result: ExecResult): Promise<number> => {
  const { execId, exitCode, signal, reason, fault, retry, stdout, stderr, stdoutTotalBytes, stderrTotalBytes, truncated } = result;
  await printJson({ sandboxId, execId, exitCode, signal, reason, fault, retry, stdout, stderr, stdoutTotalBytes, stderrTotalBytes, truncated });
  return exitCodeOf(result);
};
