/**
 * How long the output of ended commands is kept: `outputRetentionMs`, and not more than `outputKeptBytes` in one sandbox.
 *
 * What goes is the output alone. The `.out` file stays, empty: its existence is what makes an exec id known (INV-EXEC-ONCE), and
 * the exit record says how many bytes there were, so that a reader is told OUTPUT_EXPIRED and not that there were none.
 */
import { EXEC_LIMITS } from '#bus/limits.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { ExecFiles, KeptOutput } from './files.ts';
import { CHRONUS_LIMITS } from './limits.ts';
import type { CommandTable } from './table.ts';

export type RetentionOptions = {
  readonly files: ExecFiles;
  readonly table: CommandTable;
  readonly clock: Clock;
  readonly retentionMs?: number | undefined;
};

export class Retention {
  readonly #o: RetentionOptions;
  readonly #retentionMs: number;
  /** Output of ended commands since the last look; with what that look left it is an upper bound of what is kept. */
  #keptBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RetentionOptions) {
    this.#o = options;
    this.#retentionMs = options.retentionMs ?? EXEC_LIMITS.outputRetentionMs;
  }

  /** Takes up what an earlier Edge left. */
  start(): void {
    this.#arm(0);
  }

  /** A command is over. */
  note(bytes: number): void {
    if (bytes === 0) return;
    this.#keptBytes += bytes;
    this.#arm(this.#keptBytes > EXEC_LIMITS.outputKeptBytes ? 0 : this.#retentionMs);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** A look that is due earlier stays due. */
  #arm(inMs: number): void {
    if (this.#timer && inMs > 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), Math.max(inMs, CHRONUS_LIMITS.retentionLookMs));
    this.#timer.unref();
  }

  #look(): void {
    this.#timer = undefined;
    const kept = this.#o.files.keptOutputs().filter(({ execId }) => !this.#o.table.peek(execId));
    const surplus = surplusOf(kept, this.#o.clock.now() - this.#retentionMs);
    for (const { execId } of surplus) this.#o.files.expire(execId);
    const left = kept.slice(surplus.length);
    this.#keptBytes = left.reduce((sum, { bytes }) => sum + bytes, 0);
    const [oldest] = left;
    if (oldest) this.#arm(oldest.endedAtMs + this.#retentionMs - this.#o.clock.now() + 1);
  }
}

/** Those that ended before `untilMs`, and as many more of the oldest as the rest is too large by. `kept` is in order of age. */
const surplusOf = (kept: readonly KeptOutput[], untilMs: number): readonly KeptOutput[] => {
  let bytes = kept.reduce((sum, output) => sum + output.bytes, 0);
  let count = 0;
  for (const output of kept) {
    if (output.endedAtMs > untilMs && bytes <= EXEC_LIMITS.outputKeptBytes) break;
    bytes -= output.bytes;
    count += 1;
  }
  return kept.slice(0, count);
};
