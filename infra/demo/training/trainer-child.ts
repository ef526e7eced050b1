/** The trainer's process, seen by whoever kills it: its lines counted, its death awaited. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export type TrainerEvent = { readonly event: 'attached' | 'turn' | 'result' | 'finished'; readonly rolloutId?: string };

export class TrainerChild {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #complaint = '';
  turns = 0;
  isFinished = false;

  constructor(program: string, args: readonly string[], onEvent: (event: TrainerEvent) => void) {
    this.#child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#exited = once(this.#child, 'close'); // after its last line was read, unlike 'exit'
    this.#child.stderr?.on('data', (bytes: Buffer) => {
      this.#complaint = (this.#complaint + bytes.toString()).slice(-2_000);
    });
    if (this.#child.stdout)
      createInterface({ input: this.#child.stdout }).on('line', (line) => {
        const event = JSON.parse(line) as TrainerEvent;
        if (event.event === 'turn') this.turns += 1;
        if (event.event === 'finished') this.isFinished = true;
        onEvent(event);
      });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }
  get hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
  /** What it said on stderr last. */
  get complaint(): string {
    return this.#complaint.trim();
  }

  async kill(): Promise<void> {
    if (!this.hasExited) this.#child.kill('SIGKILL');
    await this.#exited;
  }

  async exited(): Promise<void> {
    await this.#exited;
  }
}
