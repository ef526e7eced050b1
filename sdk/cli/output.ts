/**
 * What the client commands print: bytes, lines, JSON lines and tables. Nothing is written faster than the reader takes
 * it, a reader that has left ends the command quietly, and text that comes from users cannot drive the terminal.
 */
import Table from 'cli-table3';
import { CLI_LIMITS } from './limits.ts';

/** The reader of our output has gone, as `head` does. Not an error to report. */
export class OutputClosed extends Error {}

export type Output = NodeJS.WritableStream;

/** Resolves when the reader has taken it. */
export const write = (output: Output, data: string | Uint8Array): Promise<void> =>
  new Promise((resolve, reject) => {
    output.write(data, (error?: Error | null) => {
      if (!error) resolve();
      else reject(['EPIPE', 'ERR_STREAM_DESTROYED'].includes((error as NodeJS.ErrnoException).code ?? '') ? new OutputClosed() : error);
    });
  });

export const printLine = (text: string): Promise<void> => write(process.stdout, `${text}\n`);
/** One JSON document per line. */
export const printJson = (value: unknown): Promise<void> => printLine(JSON.stringify(value));
export const complain = (text: string): Promise<void> => write(process.stderr, `dsec: ${printable(text)}\n`);

/** Without control characters, which a label or an error could carry to the terminal, and on one line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
export const printable = (text: string): string => text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ');

const cell = (value: unknown): string => {
  const text = printable(value === null || value === undefined ? '-' : String(value));
  return text.length <= CLI_LIMITS.cellLength ? text : `${text.slice(0, CLI_LIMITS.cellLength - 1)}…`;
};

/** Plain columns, so that the output can be cut by other programs too. The first column, an id, is never shortened. */
export const tableText = (head: readonly string[], rows: readonly (readonly unknown[])[]): string => {
  const none = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' };
  const bars = { left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ' };
  const table = new Table({ head: [...head], chars: { ...none, ...bars }, style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 } });
  for (const [first, ...rest] of rows) table.push([printable(String(first)), ...rest.map(cell)]);
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
};

export const printTable = (head: readonly string[], rows: readonly (readonly unknown[])[]): Promise<void> => printLine(tableText(head, rows));

/** A table of any length: printed whenever a batch is full, so that memory does not grow with it. */
export class TablePrinter {
  #head: readonly string[];
  #rows: (readonly unknown[])[] = [];

  constructor(head: readonly string[]) {
    this.#head = head;
  }

  async add(row: readonly unknown[]): Promise<void> {
    this.#rows.push(row);
    if (this.#rows.length >= CLI_LIMITS.rowsPerTable) await this.flush();
  }

  async flush(): Promise<void> {
    const rows = this.#rows;
    this.#rows = [];
    if (rows.length > 0 || this.#head.length > 0) await printTable(this.#head, rows);
    this.#head = [];
  }
}

/** `5s`, `3m`, `2h`, `4d`. */
export const span = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`;
};

export const time = (at: number | null): string => (at === null ? '-' : new Date(at).toISOString());
export const pairs = (record: Readonly<Record<string, string>>): string =>
  Object.entries(record)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
