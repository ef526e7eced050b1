/** One role as a supervised child process: started, watched, restarted with back-off, told to drain, ended. */
import { type ChildProcess, spawn } from 'node:child_process';
import { DsecError } from '#bus/errors.ts';
import type { Log } from '../../log/log.ts';
import { backoffMs } from '#actors/kernel/work.ts';
import { type FromRole, SUPERSEDED_EXIT, type ServedRole, type ToRole } from '../supervision.ts';
import { UP_LIMITS } from './limits.ts';

export type RoleChildOptions = {
  readonly roles: readonly ServedRole[];
  readonly program: string;
  /** Begins the command line: what puts the process into another network namespace. */
  readonly prefix?: readonly string[];
  readonly configFile: string;
  readonly log: Log;
  /** Where the role's stderr goes: the parent's own, or a file's descriptor. */
  readonly stderr: 'inherit' | number;
  /** Told of what the role says beside its own life. */
  readonly onMessage?: (message: FromRole) => void;
  /** Longest pause before it is started again. */
  readonly restartMaxMs: number;
};

export class RoleChild {
  readonly #o: RoleChildOptions;
  #child: ChildProcess | undefined;
  #ending = false;
  #startedAtMs = 0;
  #restarts = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  #onMessage: (message: FromRole) => void = () => {};
  #isReady = false;
  /** Called when the process that runs now gets ready or dies. */
  #onTurn: () => void = () => {};

  private constructor(options: RoleChildOptions) {
    this.#o = options;
  }

  /** Starts the role and waits until it serves; rejects with the role's own error. */
  static async start(options: RoleChildOptions): Promise<RoleChild> {
    const role = new RoleChild(options);
    await role.#spawn();
    return role;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * Asks the role to end what it runs; resolves when it has, or when the time is over (false). One that has just died, or dies
   * over it, is asked again when it has been started again: what it runs outlives it.
   */
  drain(onProgress: (left: number) => void): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => done(false), UP_LIMITS.drainTimeoutMs);
      const done = (ok: boolean) => {
        clearTimeout(timer);
        this.#onMessage = () => {};
        this.#onTurn = () => {};
        resolve(ok);
      };
      this.#onMessage = (message) => {
        if (message.type === 'draining') onProgress(message.left);
        if (message.type === 'drained') done(true);
      };
      this.#onTurn = () => {
        if (this.#isReady && this.#child?.connected) this.#child.send({ type: 'drain' } satisfies ToRole);
        else if (this.#isOver) done(false);
      };
      this.#onTurn();
    });
  }

  /** Neither running nor about to be started again. */
  get #isOver(): boolean {
    return !this.#isReady && (this.#child?.exitCode ?? null) === SUPERSEDED_EXIT;
  }

  /** Ends the process for good. */
  async stop(): Promise<void> {
    this.#ending = true;
    clearTimeout(this.#restartTimer);
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    const force = setTimeout(() => child.kill('SIGKILL'), UP_LIMITS.stopTimeoutMs);
    await exited;
    clearTimeout(force);
  }

  #spawn(): Promise<void> {
    const { roles, program, configFile, stderr, log } = this.#o;
    this.#startedAtMs = performance.now();
    const [command = process.execPath, ...before] = [...(this.#o.prefix ?? []), process.execPath];
    const child = spawn(command, [...before, '--enable-source-maps', program, 'serve', ...roles, '--config', configFile], {
      stdio: ['ignore', 'ignore', stderr, 'ipc'],
      serialization: 'json',
    });
    this.#child = child;
    return new Promise((resolve, reject) => {
      let ready = false;
      let failure: DsecError | undefined;
      const timer = setTimeout(() => child.kill('SIGKILL'), UP_LIMITS.readyTimeoutMs);
      child.on('message', (message: FromRole) => {
        if (message.type === 'ready') {
          ready = true;
          this.#isReady = true;
          clearTimeout(timer);
          resolve();
          this.#onTurn();
        }
        if (message.type === 'failed') failure = DsecError.of('HOST_UNFIT', message.message, { details: { role: roles.join('+'), code: message.code } });
        this.#onMessage(message);
        this.#o.onMessage?.(message);
      });
      child.once('error', reject);
      child.once('exit', (code, signal) => {
        clearTimeout(timer);
        this.#isReady = false;
        this.#onTurn();
        if (!ready) reject(failure ?? DsecError.of('INTERNAL', `role ${roles.join('+')} ended (${signal ?? code}) before it was ready; see its log`));
        if (this.#ending) return;
        log.warn('role.died', { role: roles.join('+'), code: String(code), signal });
        if (ready && code !== SUPERSEDED_EXIT) this.#restart();
      });
    });
  }

  #restart(): void {
    if (performance.now() - this.#startedAtMs > UP_LIMITS.stableAfterMs) this.#restarts = 0;
    this.#restarts += 1;
    const waitMs = backoffMs(this.#restarts, UP_LIMITS.restartMinMs, this.#o.restartMaxMs);
    this.#restartTimer = setTimeout(() => {
      if (this.#ending) return;
      this.#spawn().then(
        () => this.#o.log.info('role.restarted', { role: this.#o.roles.join('+'), durationMs: Math.round(performance.now() - this.#startedAtMs) }),
        (thrown: unknown) => {
          this.#o.log.error('role.restart_failed', { role: this.#o.roles.join('+'), message: (thrown as Error).message });
          if (!this.#ending) this.#restart();
        },
      );
    }, waitMs);
  }
}
