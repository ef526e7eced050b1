/** Commands of a test responder: real processes of this machine behind the data plane's operations. */
import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { DsecError } from '#bus/errors.ts';
import { type ExecId, type SandboxId, execIdFor } from '#bus/ids.ts';
import { EXEC_LIMITS } from '#bus/limits.ts';
import type { ExecView, OpParsed } from '#bus/op/schema.ts';

type Running = {
  readonly execId: ExecId;
  readonly child: ChildProcess;
  readonly startedAt: number;
  readonly out: { stdout: Buffer; stderr: Buffer };
  readonly limit: number;
  readonly totals: { stdout: number; stderr: number };
  stdinAt: number;
  stdinOpen: boolean;
  end: { code: number | null; signal: NodeJS.Signals | null; timedOut: boolean } | undefined;
  readonly changed: Set<() => void>;
};

export class FakeCommands {
  readonly #running = new Map<ExecId, Running>();
  /** Processes ever started: what tests of repetition count. */
  started = 0;

  async exec(id: SandboxId, request: OpParsed<'exec'>, body: Uint8Array): Promise<readonly [object, Uint8Array]> {
    const execId = execIdFor(id, request.key);
    const run = this.#running.get(execId) ?? this.#start(execId, request, body);
    await this.#until(run, () => run.end !== undefined, request.waitMs);
    return answerOf(run);
  }

  async wait({ execId, waitMs }: OpParsed<'wait'>): Promise<readonly [object, Uint8Array]> {
    const run = this.#find(execId);
    await this.#until(run, () => run.end !== undefined, waitMs);
    return answerOf(run);
  }

  async read({ execId, stream, offset, maxBytes, waitMs }: OpParsed<'read'>): Promise<readonly [object, Uint8Array]> {
    const run = this.#find(execId);
    await this.#until(run, () => run.out[stream].byteLength > offset || run.end !== undefined, waitMs);
    const bytes = run.out[stream].subarray(offset, offset + maxBytes);
    const ended = run.end !== undefined;
    return [{ offset, ended, eof: ended && offset + bytes.byteLength >= run.out[stream].byteLength, summary: summaryOf(run, stream) }, bytes];
  }

  signal({ execId, signal }: OpParsed<'signal'>): object {
    return { delivered: this.#find(execId).child.kill(`SIG${signal}` as NodeJS.Signals) };
  }

  /** Takes at most 64 KiB at a time, so that writers meet partial acceptance. */
  stdin({ execId, offset, close }: OpParsed<'stdin'>, body: Uint8Array): object {
    const run = this.#find(execId);
    if (run.end || !run.stdinOpen) throw DsecError.of('STDIN_CLOSED', `stdin of ${execId} is closed`);
    const fresh = body.subarray(Math.max(0, run.stdinAt - offset)).subarray(0, 65_536);
    if (fresh.byteLength > 0) run.child.stdin?.write(fresh);
    run.stdinAt += fresh.byteLength;
    if (close && run.stdinAt >= offset + body.byteLength) {
      run.stdinOpen = false;
      run.child.stdin?.end();
    }
    return { nextOffset: run.stdinAt };
  }

  list(): object {
    return { execs: [...this.#running.values()].map(viewOf) };
  }

  killAll(): void {
    for (const run of this.#running.values()) if (!run.end) run.child.kill('SIGKILL');
  }

  #start(execId: ExecId, request: OpParsed<'exec'>, body: Uint8Array): Running {
    const [file, ...args] = request.argv ?? ['/bin/sh', '-c', request.shell ?? ''];
    const child = spawn(file ?? '', args, { env: { ...process.env, ...request.env }, stdio: 'pipe' });
    this.started += 1;
    const run: Running = {
      execId,
      child,
      startedAt: Date.now(),
      out: { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) },
      limit: request.outputLimitBytes ?? EXEC_LIMITS.outputBytesDefault,
      totals: { stdout: 0, stderr: 0 },
      stdinAt: 0,
      stdinOpen: request.stdin === 'open',
      end: undefined,
      changed: new Set(),
    };
    this.#running.set(execId, run);
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream]?.on('data', (chunk: Buffer) => {
        run.totals[stream] += chunk.byteLength;
        run.out[stream] = Buffer.concat([run.out[stream], chunk]).subarray(0, run.limit);
        notify(run);
      });
    }
    child.stdin?.on('error', () => {}); // a program may leave without reading its input
    if (request.stdin === 'bytes') child.stdin?.end(body);
    else if (request.stdin === 'none') child.stdin?.end();
    const overdue = (): void => {
      run.end ??= { code: null, signal: 'SIGKILL', timedOut: true };
      child.kill('SIGKILL');
    };
    const timer = request.timeoutMs === undefined ? undefined : setTimeout(overdue, request.timeoutMs);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      run.end ??= { code, signal, timedOut: false };
      notify(run);
    });
    return run;
  }

  #find(execId: ExecId): Running {
    const run = this.#running.get(execId);
    if (!run) throw DsecError.of('EXEC_NOT_FOUND', `no command ${execId}`);
    return run;
  }

  #until(run: Running, condition: () => boolean, waitMs: number): Promise<void> {
    if (condition()) return Promise.resolve();
    return new Promise((resolve) => {
      const look = (): void => {
        if (condition()) end();
      };
      const end = (): void => {
        clearTimeout(timer);
        run.changed.delete(look);
        resolve();
      };
      const timer = setTimeout(end, waitMs);
      run.changed.add(look);
    });
  }
}

const notify = (run: Running): void => {
  for (const look of [...run.changed]) look();
};

const summaryOf = (run: Running, stream: 'stdout' | 'stderr') => {
  const storedBytes = run.out[stream].byteLength;
  const truncated = run.totals[stream] > storedBytes;
  return { totalBytes: run.totals[stream], storedBytes, discardedBytes: 0, truncated, dropped: truncated ? ('limit' as const) : null };
};

const viewOf = (run: Running): Omit<ExecView, 'startedAt' | 'endedAt'> & { startedAt: number; endedAt: number | null } => {
  const { end } = run;
  const number = end?.signal ? constants.signals[end.signal] : 0;
  return {
    execId: run.execId,
    state: end ? 'ended' : 'running',
    startedAt: run.startedAt,
    endedAt: end ? Date.now() : null,
    exitCode: end ? (end.code ?? 128 + number) : null,
    signal: end?.signal?.slice(3) ?? null,
    reason: end ? (end.timedOut ? 'timeout' : end.signal ? 'signaled' : 'exited') : null,
    fault: null,
    retry: null,
    stdout: summaryOf(run, 'stdout'),
    stderr: summaryOf(run, 'stderr'),
    pipesOpen: false,
    oomKills: 0,
    terminal: false,
    replayed: false,
  };
};

const answerOf = (run: Running): readonly [object, Uint8Array] => {
  const stdout = run.out.stdout.subarray(0, EXEC_LIMITS.inlineOutputBytes);
  const stderr = run.out.stderr.subarray(0, EXEC_LIMITS.inlineOutputBytes);
  return [{ exec: viewOf(run), inline: { stdoutBytes: stdout.byteLength, stderrBytes: stderr.byteLength } }, Buffer.concat([stdout, stderr])];
};
