/** A run's commits as JSONL, the same lines that `dsec events --json` prints: one tool reads both. Written in pieces, never held. */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { Observer } from '../hosts/observer.ts';

/** Bytes gathered before they are written. */
const PIECE_BYTES = 1_048_576;

export class TraceFile {
  readonly #file: number;
  #lines: string[] = [];
  #bytes = 0;
  readonly observer: Partial<Observer> = {
    stored: (_, commit) => {
      if (commit) this.#add(JSON.stringify(commit));
    },
  };

  constructor(path: string) {
    this.#file = openSync(path, 'w');
  }

  close(): void {
    this.#flush();
    closeSync(this.#file);
  }

  #add(line: string): void {
    this.#lines.push(line, '\n');
    this.#bytes += line.length;
    if (this.#bytes >= PIECE_BYTES) this.#flush();
  }

  #flush(): void {
    writeSync(this.#file, this.#lines.join(''));
    this.#lines = [];
    this.#bytes = 0;
  }
}
