/** Somebody at a terminal: starts a program there, types, reads the screen, changes the window's size. */
import { closeSync, constants, openSync, readFileSync } from 'node:fs';
import { type IPty, spawn } from 'node-pty';

export type Departure = { readonly exitCode: number; readonly signal: number };
type Watcher = { readonly pattern: RegExp; readonly from: number; readonly resolve: (seen: string) => void };

export class Person {
  /** Everything that was printed so far. */
  screen = '';
  readonly left: Promise<Departure>;
  readonly #terminal: IPty;
  /** Held until the end: with its last reader the kernel would drop what the program printed last. */
  readonly #slave: number;
  #watchers: Watcher[] = [];

  constructor(program: string, args: readonly string[], options: { readonly env?: NodeJS.ProcessEnv; readonly rows?: number; readonly cols?: number } = {}) {
    const env = { ...process.env, TERM: 'xterm', ...options.env } as Record<string, string>;
    // a shell around it says how the terminal was set before and after
    this.#terminal = spawn('/bin/sh', ['-c', 'stty -a; "$@"; code=$?; stty -a; exit $code', 'sh', program, ...args], {
      env,
      rows: options.rows ?? 24,
      cols: options.cols ?? 80,
    });
    this.#slave = openSync((this.#terminal as IPty & { readonly ptsName: string }).ptsName, constants.O_RDWR | constants.O_NOCTTY);
    this.#terminal.onData((text) => {
      this.screen += text;
      this.#look();
    });
    this.left = new Promise((resolve) => {
      this.#terminal.onExit(({ exitCode, signal }) => resolve({ exitCode, signal: signal ?? 0 }));
    });
  }

  /** Of the program. */
  get pid(): number {
    const shell = this.#terminal.pid;
    return Number(readFileSync(`/proc/${shell}/task/${shell}/children`, 'utf8').trim().split(' ')[0]);
  }

  /** How the terminal was set before the program began, and after it had ended: what `stty` says, but for the size. */
  get modes(): readonly string[] {
    return (this.screen.match(/\bline = [\s\S]*?-extproc/g) ?? []).map((text) => text.replace(/\s+/g, ' '));
  }

  type(text: string): void {
    this.#terminal.write(text);
  }

  resize(rows: number, cols: number): void {
    this.#terminal.resize(cols, rows);
  }

  /** Resolves with what was printed since this call, once it matches. */
  sees(pattern: RegExp, from = this.screen.length): Promise<string> {
    return new Promise((resolve) => {
      this.#watchers.push({ pattern, from, resolve });
      this.#look();
    });
  }

  /** Types a line and waits for what it leads to. */
  async ask(line: string, answer: RegExp): Promise<string> {
    const seen = this.sees(answer);
    this.type(`${line}\r`);
    return seen;
  }

  leave(): void {
    closeSync(this.#slave);
    this.#terminal.kill('SIGKILL');
  }

  #look(): void {
    this.#watchers = this.#watchers.filter(({ pattern, from, resolve }) => {
      const seen = this.screen.slice(from);
      if (!pattern.test(seen)) return true;
      resolve(seen);
      return false;
    });
  }
}
