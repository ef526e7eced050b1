/** How a command ended, and its output. */
import type { Fault, Retry } from '#bus/errors.ts';
import type { ExecId } from '#bus/ids.ts';
import type { DropReason, ExecReason, ExecView } from '#bus/op/schema.ts';
import { decodeText } from './text.ts';

/** The end of a command without its output. */
export class ExecEnd {
  readonly execId: ExecId;
  /** 0…255; 128 + n for a death by signal n. Null when no exit record exists: unknown is never 0. */
  readonly exitCode: number | null;
  /** Name of the signal it died of, without `SIG`. */
  readonly signal: string | null;
  readonly reason: ExecReason;
  /** Whose failure it is; null for a success. A trainer masks `infra` and `preempted`. */
  readonly fault: Fault | null;
  readonly retry: Retry | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** Bytes that the program wrote, kept or not. */
  readonly stdoutTotalBytes: number;
  readonly stderrTotalBytes: number;
  /** A child in the background still held its pipes when it ended; what that writes is in the command's log. */
  readonly pipesOpen: boolean;
  /** Processes of it that the kernel killed for memory. */
  readonly oomKills: number;
  /** Output beyond the limit was dropped. */
  readonly stdoutTruncated: boolean;
  readonly stderrTruncated: boolean;
  /** And why. */
  readonly stdoutDropped: DropReason | null;
  readonly stderrDropped: DropReason | null;
  /** Not run in this sandbox: answered from the record of the lost one that it was recovered from. */
  readonly replayed: boolean;

  constructor(view: ExecView) {
    this.execId = view.execId;
    this.exitCode = view.exitCode;
    this.signal = view.signal;
    this.reason = view.reason ?? 'infra';
    this.fault = view.fault;
    this.retry = view.retry;
    this.startedAt = view.startedAt;
    this.endedAt = view.endedAt;
    this.stdoutTotalBytes = view.stdout.totalBytes;
    this.stderrTotalBytes = view.stderr.totalBytes;
    this.stdoutTruncated = view.stdout.truncated;
    this.stderrTruncated = view.stderr.truncated;
    this.stdoutDropped = view.stdout.dropped;
    this.stderrDropped = view.stderr.dropped;
    this.pipesOpen = view.pipesOpen;
    this.oomKills = view.oomKills;
    this.replayed = view.replayed;
  }

  /** It exited by itself, with 0. */
  get ok(): boolean {
    return this.exitCode === 0 && this.reason === 'exited';
  }
  get truncated(): boolean {
    return this.stdoutTruncated || this.stderrTruncated;
  }
}

/** The end of a command with the output that was kept. */
export class ExecResult extends ExecEnd {
  readonly stdoutBytes: Uint8Array;
  readonly stderrBytes: Uint8Array;

  constructor(view: ExecView, stdoutBytes: Uint8Array, stderrBytes: Uint8Array) {
    super(view);
    this.stdoutBytes = stdoutBytes;
    this.stderrBytes = stderrBytes;
  }

  /** Decoded as UTF-8; what is not becomes U+FFFD. */
  get stdout(): string {
    return decodeText(this.stdoutBytes);
  }
  get stderr(): string {
    return decodeText(this.stderrBytes);
  }
}
