/**
 * The journal of one sandbox's commands: JSON lines in the exec directory, appended before Aether is asked for anything.
 *
 * A line is one fact about one command. A torn last line (the node's process died while it wrote) is no fact: nothing had
 * been started on its strength. Read as a whole only when a new Edge meets the sandbox; single commands are looked up in the
 * file's bytes, so that thousands of ended commands cost a sandbox nothing.
 */
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ClientKey, ExecId } from '#bus/ids.ts';
import { ExecView, OnFull } from '#bus/op/schema.ts';
import { TimestampMs } from '#bus/units.ts';

const v = z.literal(1);

const Accepted = z.object({
  v,
  fact: z.literal('accepted'),
  execId: ExecId,
  key: ClientKey,
  bodyHash: z.string(),
  at: TimestampMs,
  stdin: z.enum(['none', 'bytes', 'open']),
  timeoutMs: z.number(),
  outputLimitBytes: z.number(),
  onFull: OnFull,
  terminal: z.boolean(),
  /** It did not run here: how it ended in the lost sandbox whose place this one takes. */
  replayed: ExecView.optional(),
});

const Fact = z.discriminatedUnion('fact', [
  Accepted,
  /** It could not be started; nothing of it ran. The same key may try again. */
  z.object({ v, fact: z.literal('refused'), execId: ExecId }),
  /** Its sandbox was gone before an exit record was written. */
  z.object({ v, fact: z.literal('sandbox_died'), execId: ExecId, at: TimestampMs, reason: z.enum(['expired', 'sandbox_died']).optional() }),
]);

export type Accepted = z.infer<typeof Accepted>;
export type Fact = z.infer<typeof Fact>;
export type Death = { readonly at: TimestampMs; readonly reason: 'expired' | 'sandbox_died' };

/** What the journal says of one command. */
export type JournalEntry = { readonly accepted: Accepted; readonly refused: boolean; readonly death: Death | undefined };

const NEW_LINE = 0x0a;

const parseLine = (line: string): Fact | undefined => {
  try {
    return Fact.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
};

const fold = (facts: Iterable<Fact>): Map<ExecId, JournalEntry> => {
  const entries = new Map<ExecId, JournalEntry>();
  for (const fact of facts) {
    const known = entries.get(fact.execId);
    if (fact.fact === 'accepted') {
      entries.delete(fact.execId); // a second try moves to the end: order is the order of acceptance
      entries.set(fact.execId, { accepted: fact, refused: false, death: undefined });
    } else if (known) {
      entries.set(fact.execId, {
        ...known,
        ...(fact.fact === 'refused' ? { refused: true } : { death: { at: fact.at, reason: fact.reason ?? 'sandbox_died' } }),
      });
    }
  }
  return entries;
};

export class Journal {
  readonly #path: string;
  /** The last byte of the file is a line break, as far as is known: a torn line must not swallow the next one. */
  #endsClean = false;

  constructor(execDir: string) {
    this.#path = join(execDir, 'journal');
  }

  append(fact: Fact): void {
    const line = `${JSON.stringify(fact)}\n`;
    appendFileSync(this.#path, this.#endsClean ? line : this.#afterTornLine(line), { mode: 0o600 });
    this.#endsClean = true;
  }

  /** Everything, oldest first. */
  readAll(): Map<ExecId, JournalEntry> {
    return fold(this.#facts(this.#read()));
  }

  /** One command, found without parsing the others. */
  find(execId: ExecId): JournalEntry | undefined {
    const bytes = this.#read();
    const facts: Fact[] = [];
    for (let at = bytes.indexOf(execId); at >= 0; ) {
      const end = bytes.indexOf(NEW_LINE, at);
      if (end < 0) break;
      const fact = parseLine(bytes.toString('utf8', bytes.lastIndexOf(NEW_LINE, at) + 1, end));
      if (fact?.execId === execId) facts.push(fact);
      at = bytes.indexOf(execId, end);
    }
    return fold(facts).get(execId);
  }

  /** Replaces the file by what `entries` say: written aside, then renamed. */
  rewrite(entries: Iterable<JournalEntry>): void {
    let text = '';
    for (const { accepted, refused, death } of entries) {
      const { execId } = accepted;
      const facts: Fact[] = [accepted];
      if (refused) facts.push({ v: 1, fact: 'refused', execId });
      if (death) facts.push({ v: 1, fact: 'sandbox_died', execId, ...death });
      text += facts.map((fact) => `${JSON.stringify(fact)}\n`).join('');
    }
    writeFileSync(`${this.#path}.new`, text, { mode: 0o600 });
    renameSync(`${this.#path}.new`, this.#path);
    this.#endsClean = true;
  }

  #read(): Buffer {
    try {
      return readFileSync(this.#path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
      throw error;
    }
  }

  *#facts(bytes: Buffer): Generator<Fact> {
    const end = bytes.lastIndexOf(NEW_LINE);
    if (end < 0) return;
    for (const line of bytes.toString('utf8', 0, end).split('\n')) {
      const fact = parseLine(line);
      if (fact) yield fact;
    }
  }

  #afterTornLine(line: string): string {
    const bytes = this.#read();
    return bytes.byteLength === 0 || bytes[bytes.byteLength - 1] === NEW_LINE ? line : `\n${line}`;
  }
}
