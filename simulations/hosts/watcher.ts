/** One watcher, as `node-runtime/roles/watcher` is: hears commits of Edges, reads the log before it says that one is lost. */
import type { EdgeCommand, EdgeEvent, EdgeState } from '#bus/edge/schema.ts';
import type { Commit } from '#bus/envelope.ts';
import type { EdgeName } from '#bus/ids.ts';
import { readState } from '#bus/records.ts';
import { edgeAddress, SYSTEM_PROJECT, SYSTEM_SHARD } from '#bus/subjects.ts';
import { LeaseWatch } from '#actors/watcher/leases.ts';
import { ActorRunner } from './actor-runner.ts';
import { HOST_LIMITS } from './limits.ts';
import type { Observer } from './observer.ts';
import type { Parts } from './parts.ts';
import type { Process } from './process.ts';

const EDGES = { shard: SYSTEM_SHARD, project: SYSTEM_PROJECT, kind: 'edge', home: '_' } as const;

export class SimWatcher {
  readonly #process: Process;
  readonly #serverUp: () => boolean;
  readonly #leases = new LeaseWatch();
  readonly #reading = new Set<EdgeName>();
  readonly #runner: ActorRunner<EdgeState, EdgeCommand, EdgeEvent, never>;

  constructor(process: Process, parts: Parts, observer: Observer, serverUp: () => boolean) {
    this.#process = process;
    this.#serverUp = serverUp;
    this.#runner = new ActorRunner({
      process,
      definition: parts.edge,
      host: parts.host(parts.edge),
      onReply: (address, result) => observer.replied(address, result),
    });
  }

  start(): void {
    this.#process.bus.subscribe<{ commit: Commit }>('out.system', this.#process.link, ({ commit }) => {
      if (commit.kind === 'edge') this.#learned(commit);
    });
    this.#refresh();
    this.#process.every(HOST_LIMITS.edgesRefreshMs, 'edges', () => this.#refresh());
    this.#process.every(HOST_LIMITS.watcherTickMs, 'watch', () => this.#tick());
  }

  kill(): void {
    this.#process.kill();
    this.#runner.close();
  }

  #learned({ state, schema }: Commit): void {
    this.#leases.learned(readState('edge', state, schema), this.#process.clock.monotonicMs());
  }

  #refresh(): void {
    this.#process.log.lastOfEach(EDGES, (answer) => {
      if (answer.ok) for (const { commit } of answer.value) this.#learned(commit);
    });
  }

  #tick(): void {
    const atMs = this.#process.clock.monotonicMs();
    if (this.#process.link.cut || !this.#serverUp()) return this.#leases.interrupted(atMs);
    for (const edge of this.#leases.overdue(atMs)) if (!this.#reading.has(edge)) this.#confirm(edge);
  }

  #confirm(edge: EdgeName): void {
    this.#reading.add(edge);
    this.#process.log.last(edgeAddress(edge), (answer) => {
      this.#reading.delete(edge);
      if (!answer.ok) return this.#leases.unreadable(edge);
      if (!answer.value) return;
      const { state, schema } = answer.value.commit;
      const found = this.#leases.confirmed(readState('edge', state, schema), this.#process.clock.monotonicMs());
      if (found) this.#declare(edge, found);
    });
  }

  #declare(edge: EdgeName, finding: Extract<EdgeCommand, { type: 'DeclareLost' }>): void {
    const commandId = `${SYSTEM_PROJECT}:${edge}:lost:${finding.generation}`;
    const meta = { commandId, correlationId: commandId, principal: 'watcher', at: this.#process.clock.now() };
    this.#runner.submit(edgeAddress(edge), finding, meta, () => {
      this.#runner.evict(edgeAddress(edge)); // others write here too
    });
  }
}
