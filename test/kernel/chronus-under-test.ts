/** A Chronus over a real Aether, with calls as short as tests want them. */
import { OPS } from '#bus/op/schema.ts';
import type { ExecOpName, ExecView, OpParsed, OpRequest, OpResponse } from '#bus/op/schema.ts';
import type { ExecId, SandboxId } from '#bus/ids.ts';
import { systemClock } from '#actors/ports/clock.ts';
import { Chronus } from '#runtime/chronus/chronus.ts';
import type { ChronusOptions } from '#runtime/chronus/chronus.ts';

export const SANDBOX_ID = 'sb-0-0123456789abcdef0123-edge1' as SandboxId;
const NO_BYTES = new Uint8Array(0);

export type Finished = { readonly exec: ExecView; readonly stdout: Buffer; readonly stderr: Buffer };

export class ChronusUnderTest {
  readonly chronus: Chronus;
  lost = 0;
  activities = 0;
  #keys = 0;

  constructor(where: { readonly execDir: string; readonly socketPath: string }, options: Partial<ChronusOptions> = {}) {
    this.chronus = new Chronus({
      sandboxId: SANDBOX_ID,
      execDir: where.execDir,
      socketPath: where.socketPath,
      defaults: { user: 'root', env: {} },
      clock: systemClock,
      onActivity: () => (this.activities += 1),
      onLost: () => (this.lost += 1),
      ...options,
    });
  }

  async call<O extends ExecOpName>(op: O, request: Omit<OpRequest<O>, 'v'>, body: Uint8Array = NO_BYTES): Promise<{ data: OpResponse<O>; body: Buffer }> {
    const parsed = OPS[op].request.parse({ v: 1, ...request }) as OpParsed<O>;
    const answer = await this.chronus.handle(op, parsed, body);
    return { data: answer.data, body: Buffer.concat(answer.body) };
  }

  key(): string {
    this.#keys += 1;
    return `key-${this.#keys}`;
  }

  /** Runs to the end or to `waitMs`; output as far as it comes inline. */
  async exec(command: string | string[], request: Partial<OpRequest<'exec'>> = {}, body: Uint8Array = NO_BYTES): Promise<Finished> {
    const what = typeof command === 'string' ? { shell: command } : { argv: command };
    const { data, body: bytes } = await this.call('exec', { key: this.key(), ...what, ...request } as Omit<OpRequest<'exec'>, 'v'>, body);
    return { exec: data.exec, stdout: bytes.subarray(0, data.inline.stdoutBytes), stderr: bytes.subarray(data.inline.stdoutBytes) };
  }

  async wait(execId: ExecId): Promise<ExecView> {
    return (await this.call('wait', { execId })).data.exec;
  }

  /** Every byte of a stream until nothing follows; `onChunk` instead of collecting. */
  async readAll(execId: ExecId, stream: 'stdout' | 'stderr', onChunk?: (chunk: Buffer) => void): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for (let offset = 0; ; ) {
      const { data, body } = await this.call('read', { execId, stream, offset });
      if (onChunk) onChunk(body);
      else chunks.push(body);
      offset += body.byteLength;
      if (data.eof) return Buffer.concat(chunks);
    }
  }
}
