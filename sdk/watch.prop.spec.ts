/** Whatever the bus loses, doubles or cuts: a watch gives each commit of each sandbox once, in order, without a gap. */
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import type { ApiParsed } from '#bus/api/schema.ts';
import type { Commit } from '#bus/envelope.ts';
import { ENDED_STATUSES, type SandboxState } from '#bus/sandbox/state.ts';
import { Session } from './session.ts';
import { commitOf, PROJECT, requestIdOf, sandboxState, specFor } from './testing/records.ts';
import { ScriptedBus } from './testing/scripted-bus.ts';
import { type SandboxChange, watchSandboxes } from './watch.ts';

type Stored = { readonly commit: Commit; readonly sequence: number };
const stateOf = (stored: Stored | undefined) => stored?.commit.state as unknown as SandboxState | undefined;

/** The log, its lists and histories; what reaches the watcher is the script's business. */
class Platform {
  readonly bus = new ScriptedBus();
  readonly logs = new Map<string, Stored[]>();
  #sequence = 0;

  constructor() {
    this.bus.answers.list = (request) => this.#list(request as unknown as ApiParsed<'list'>);
    this.bus.answers.events = (request) => {
      const { id, afterVersion = 0 } = request as unknown as ApiParsed<'events'>;
      const later = (this.logs.get(id) ?? []).filter(({ commit }) => commit.version > afterVersion);
      return { commits: later.slice(0, 2).map(({ commit, sequence }) => ({ ...commit, streamSequence: sequence })), more: later.length > 2 };
    };
  }

  /** The next commit of the n-th sandbox: its birth, something in its life, or its end. */
  commit(n: number, labels: Record<string, string>, ends: boolean): Commit {
    const status = ends ? 'stopped' : 'running';
    const state = sandboxState(requestIdOf(`k${n}`), 0, 0, status, { spec: specFor({ labels }) });
    const log = this.logs.get(state.id) ?? [];
    this.logs.set(state.id, log);
    const commit = commitOf('sandbox', state.id, log.length + 1, state, ends ? 'SandboxStopped' : 'SandboxLivesExtended');
    this.#sequence += 1;
    log.push({ commit, sequence: this.#sequence });
    return commit;
  }

  #list({ labels = {}, statuses = [], changedAfter = {}, after, limit = 100 }: ApiParsed<'list'>): unknown {
    const matches = ({ commit, sequence }: Stored): boolean => {
      const state = commit.state as unknown as SandboxState;
      return (
        (statuses.length === 0 || statuses.includes(state.status)) &&
        Object.entries(labels).every(([key, value]) => state.spec.labels[key] === value) &&
        sequence > (changedAfter['0'] ?? 0)
      );
    };
    const newest = [...this.logs].map(([id, log]) => ({ id, stored: log.at(-1) as Stored })).sort((a, b) => (a.id < b.id ? -1 : 1));
    const rows = newest.filter(({ id, stored }) => (after === undefined || id > after) && matches(stored));
    const page = rows.slice(0, Math.min(limit, 3));
    return {
      sandboxes: page.map(({ stored }) => ({ version: stored.commit.version, streamSequence: stored.sequence, state: stored.commit.state })),
      next: rows.length > page.length ? (page.at(-1)?.id ?? null) : null,
      asOf: { 0: this.#sequence },
    };
  }
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('commit' as const), n: fc.nat(6), fate: fc.constantFrom('once', 'once', 'twice', 'never'), ends: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reconnect' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('breathe' as const) }) },
);

const labelsOf = (n: number): Record<string, string> => ({ job: n % 3 === 0 ? 'other' : 'mine' });

test('over any script of losses, doubles and reconnects', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), fc.array(step, { maxLength: 60, size: 'max' }), fc.boolean(), async (before, during, isFiltered) => {
      const platform = new Platform();
      for (const s of before) if (s.do === 'commit') platform.commit(s.n, labelsOf(s.n), s.ends);
      const heads = new Map([...platform.logs].map(([id, log]) => [id, log.length]));
      const seen: SandboxChange[] = [];
      const stop = new AbortController();
      const watching = (async () => {
        const options = { signal: stop.signal, ...(isFiltered ? { labels: { job: 'mine' } } : {}) };
        for await (const change of watchSandboxes(new Session(platform.bus, PROJECT), options)) seen.push(change);
      })();
      await vi.waitFor(() => expect(platform.bus.asked).toContain('list'));
      for (const s of during) {
        if (s.do === 'breathe') await new Promise((resolve) => setImmediate(resolve));
        else if (s.do === 'reconnect') platform.bus.reconnect();
        else {
          const commit = platform.commit(s.n, labelsOf(s.n), s.ends);
          for (let times = { once: 1, twice: 2, never: 0 }[s.fate] ?? 1; times > 0; times -= 1) platform.bus.publish(commit);
        }
      }
      platform.bus.reconnect();
      const expected = [...platform.logs].filter(([, log]) => !isFiltered || stateOf(log[0])?.spec.labels['job'] === 'mine');
      try {
        await vi.waitFor(() => {
          for (const [id, log] of expected) {
            const changes = seen.filter((change) => change.id === id);
            const versions = changes.map((change) => change.version);
            const head = heads.get(id) ?? 0;
            const isOver = head > 0 && ENDED_STATUSES.has(stateOf(log[head - 1])?.status ?? 'running');
            // found as the first list showed it, which is read page by page while things go on; or, when it had ended or was not there, from the next commit on
            const from = versions[0] ?? head + 1;
            const isRight = changes[0]?.kind === 'found' ? from >= head : from === head + 1 || (isOver && log.length === head);
            expect(isRight, `${id} begins at ${from}`).toBe(true);
            expect(versions, id).toEqual(log.map(({ commit }) => commit.version).filter((version) => version >= from));
          }
        });
        expect(new Set(seen.map((change) => change.id)).size).toBeLessThanOrEqual(expected.length);
      } finally {
        stop.abort();
        await expect(watching).rejects.toMatchObject({ code: 'CANCELLED' });
      }
      expect(platform.bus.subscriptionCount).toBe(1); // losses: one per client
    }),
    { numRuns: 120 },
  );
}, 60_000);
