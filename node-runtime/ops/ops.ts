/**
 * What a process shows to those who run it: liveness, readiness, metrics. One per process, whatever roles it plays; it is there before
 * the first role opens and after the last has closed, so that a slow start can be told from a dead one.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { Log } from '../log/log.ts';
import { createInstruments, type Instruments } from './instruments.ts';
import { OPS_LIMITS } from './limits.ts';
import { Checks } from './readiness.ts';
import { RoleOps } from './role-ops.ts';
import { json, type OpsServer, startOpsServer } from './server.ts';

/** Brings gauges up to date; called before each scrape. One that fails leaves its gauges without a value. */
export type Collector = () => void | Promise<void>;

export class Ops {
  readonly #instruments: Instruments = createInstruments();
  readonly #checks: Checks;
  readonly #collectors = new Set<Collector>();
  #server: OpsServer | undefined;
  #addressFile: string | undefined;

  private constructor(roles: readonly string[]) {
    this.#checks = new Checks(roles);
  }

  /** HOST_UNFIT when the address cannot be had. */
  static async open(roles: readonly string[], config: Pick<Config, 'opsListen' | 'runDir'>, log: Log): Promise<Ops> {
    const ops = new Ops(roles);
    if (config.opsListen === 'off') return ops;
    ops.#server = await startOpsServer(config.opsListen, {
      '/healthz': async () => json(200, { status: 'alive', roles, pid: process.pid }),
      '/readyz': () => ops.#readyz(),
      '/metrics': () => ops.#metrics(),
    });
    ops.#addressFile = join(config.runDir, `${roles.join('+')}.ops`);
    mkdirSync(config.runDir, { recursive: true, mode: 0o711 });
    writeFileSync(ops.#addressFile, `${ops.#server.address}\n`);
    log.info('ops.listening', { address: ops.#server.address });
    return ops;
  }

  role(role: string, log: Log): RoleOps {
    const collect = (collector: Collector) => {
      this.#collectors.add(collector);
      return () => void this.#collectors.delete(collector);
    };
    return new RoleOps({ role, log, instruments: this.#instruments, checks: this.#checks, collect });
  }

  /** Every role of the process is open. */
  serving(): void {
    this.#checks.enter('serving');
  }

  ending(): void {
    this.#checks.enter('ending');
  }

  async close(): Promise<void> {
    if (this.#addressFile) rmSync(this.#addressFile, { force: true });
    await this.#server?.close();
  }

  async #readyz() {
    const readiness = await this.#checks.look();
    return json(readiness.status === 'ready' ? 200 : 503, readiness);
  }

  async #metrics() {
    const { registry, ready } = this.#instruments;
    const collecting = Promise.allSettled([...this.#collectors].map(async (collect) => collect()));
    const readiness = await this.#checks.look();
    ready.set(readiness.status === 'ready' ? 1 : 0);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, OPS_LIMITS.askMs);
    });
    await Promise.race([collecting, late]);
    clearTimeout(timer);
    return { status: 200, type: registry.contentType, body: await registry.metrics() };
  }
}
