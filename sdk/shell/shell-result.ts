/** How one script of a shell session ended, and its output. */
import type { Fault, Retry } from '#bus/errors.ts';
import type { ExecReason } from '#bus/op/schema.ts';
import { decodeText } from '../exec/text.ts';

export type ShellOutput = { readonly bytes: Uint8Array; readonly totalBytes: number };

export type ShellEnding = {
  /** Of the script's last command; null when it was broken off or its end is unknown. */
  readonly exitCode: number | null;
  /** `exited`: by itself. `timeout`, `cancelled`: broken off. Others: how the shell itself ended under it. */
  readonly reason: ExecReason;
  readonly fault: Fault | null;
  readonly retry: Retry | null;
  /** The shell is gone: the script ended it (`exit`), or could not be broken off alone. */
  readonly shellEnded: boolean;
};

export class ShellResult implements ShellEnding {
  readonly exitCode: number | null;
  readonly reason: ExecReason;
  readonly fault: Fault | null;
  readonly retry: Retry | null;
  readonly shellEnded: boolean;
  readonly stdoutBytes: Uint8Array;
  readonly stderrBytes: Uint8Array;
  /** Bytes that the script wrote, kept or not. */
  readonly stdoutTotalBytes: number;
  readonly stderrTotalBytes: number;

  constructor(ending: ShellEnding, stdout: ShellOutput, stderr: ShellOutput) {
    this.exitCode = ending.exitCode;
    this.reason = ending.reason;
    this.fault = ending.fault;
    this.retry = ending.retry;
    this.shellEnded = ending.shellEnded;
    this.stdoutBytes = stdout.bytes;
    this.stderrBytes = stderr.bytes;
    this.stdoutTotalBytes = stdout.totalBytes;
    this.stderrTotalBytes = stderr.totalBytes;
  }

  get ok(): boolean {
    return this.exitCode === 0 && this.reason === 'exited';
  }
  get truncated(): boolean {
    return this.stdoutTotalBytes > this.stdoutBytes.byteLength || this.stderrTotalBytes > this.stderrBytes.byteLength;
  }
  /** Decoded as UTF-8; what is not becomes U+FFFD. */
  get stdout(): string {
    return decodeText(this.stdoutBytes);
  }
  get stderr(): string {
    return decodeText(this.stderrBytes);
  }
}
