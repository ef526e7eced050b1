/**
 * A responder that keeps the contract's promises in memory, over a real nats-server, with faults that tests switch on:
 * commits published twice, late or never, answers left out, and restarts during which nobody listens.
 */
import { type Msg, type NatsConnection, type Subscription, connect } from '@nats-io/transport-node';
import { API, type ApiParsed, type ApiVerb, isApiVerb } from '#bus/api/schema.ts';
import type { Commit } from '#bus/envelope.ts';
import { DsecError, type WireError, toWireError, wireError } from '#bus/errors.ts';
import { type RequestId, type SandboxId, bodyHashOf, chunkIdFor, requestIdFor } from '#bus/ids.ts';
import { WIRE_LIMITS } from '#bus/limits.ts';
import { packOp, unpackOp } from '#bus/op/codec.ts';
import { OPS, type OpParsed, isOpName } from '#bus/op/schema.ts';
import { chunkCount, chunkSize, type GroupDecision, type GroupMode } from '#bus/request/group.ts';
import type { RequestState } from '#bus/request/schema.ts';
import type { SandboxState, SandboxStatus } from '#bus/sandbox/state.ts';
import { API_FILTER, opFilter, outSubject, parseApiSubject, parseOpSubject, requestAddress, sandboxAddress } from '#bus/subjects.ts';
import { FakeCommands } from './fake-commands.ts';
import { EDGE, type FakeItem, PROJECT, commitOf, requestState, sandboxState, specFor } from './records.ts';

export type Publication = 'once' | 'twice' | 'never' | 'late';
export type Faults = {
  /** What happens to a commit on its way to watchers; it is stored in any case. */
  publish: (commit: Commit) => Publication;
  /** False leaves the request without an answer, done or not. */
  answer: (name: string, nth: number) => 'answer' | 'silent' | 'done but silent';
  /** Why an item is not taken by the Edge, by index and attempt; the next attempt follows. */
  refuse: (index: number, attempt: number) => boolean;
  /** How an item ends instead of running. */
  fail: (index: number) => WireError | undefined;
};

type Stored = { commit: Commit; sequence: number };
const LATE_MS = 30;

export class FakePlatform {
  readonly commands = new FakeCommands();
  readonly calls = new Map<string, number>();
  readonly faults: Faults = { publish: () => 'once', answer: () => 'answer', refuse: () => false, fail: () => undefined };
  readonly #nats: NatsConnection;
  readonly #logs = new Map<string, Stored[]>();
  readonly #bodies = new Map<RequestId, string>();
  #subscriptions: Subscription[] = [];
  #sequence = 0;

  constructor(nats: NatsConnection) {
    this.#nats = nats;
    this.listen();
  }

  static async start(url: string): Promise<FakePlatform> {
    return new FakePlatform(await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 50 }));
  }

  listen(): void {
    this.#subscriptions = [
      this.#nats.subscribe(API_FILTER, { callback: (_, message) => void this.#onApi(message) }),
      this.#nats.subscribe(opFilter(EDGE), { callback: (_, message) => void this.#onOp(message) }),
    ];
  }

  /** Nobody listens any more; what is stored stays. */
  async deafen(): Promise<void> {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    await this.#nats.flush();
  }

  async stop(): Promise<void> {
    this.commands.killAll();
    await this.#nats.close();
  }

  count(name: string): number {
    return this.calls.get(name) ?? 0;
  }

  sandboxIds(): SandboxId[] {
    return [...this.#logs.keys()].filter((id) => id.startsWith('sb-')) as SandboxId[];
  }

  async #onApi(message: Msg): Promise<void> {
    const verb = parseApiSubject(message.subject)?.verb ?? '';
    await this.#answer(verb, message, async () => {
      if (!isApiVerb(verb)) throw DsecError.of('UNKNOWN_VERB', verb);
      const request = API[verb].request.parse(message.json());
      return Buffer.from(JSON.stringify({ ok: true, data: this.#api(verb, request) }));
    });
  }

  async #onOp(message: Msg): Promise<void> {
    const target = parseOpSubject(message.subject);
    const op = target?.op ?? '';
    await this.#answer(op, message, async () => {
      if (!isOpName(op)) throw DsecError.of('UNKNOWN_VERB', op);
      const { meta, body } = unpackOp(message.data);
      const [data, bytes] = await this.#op(op, target?.sandbox as SandboxId, OPS[op].request.parse(meta), body);
      return packOp({ ok: true, data }, bytes);
    });
  }

  async #answer(name: string, message: Msg, work: () => Promise<Uint8Array>): Promise<void> {
    const nth = this.count(name) + 1;
    this.calls.set(name, nth);
    const fate = this.faults.answer(name, nth);
    if (fate === 'silent') return;
    const isOp = message.subject.startsWith('dsec.op.');
    const bytes = await work().catch((thrown: unknown) => {
      const answer = { ok: false, error: toWireError(thrown) };
      return isOp ? packOp(answer) : Buffer.from(JSON.stringify(answer));
    });
    if (fate === 'answer' && !this.#nats.isClosed()) message.respond(bytes);
  }

  #api(verb: ApiVerb, request: unknown): unknown {
    switch (verb) {
      case 'info':
        return { platformVersion: 'test', shards: ['0'], laneCount: 1 };
      case 'create':
        return this.#create(request as ApiParsed<'create'>);
      case 'request': {
        const stored = this.#last((request as ApiParsed<'request'>).id);
        if (!stored) throw DsecError.of('REQUEST_NOT_FOUND', 'no such request');
        return { version: stored.commit.version, streamSequence: stored.sequence, state: stored.commit.state };
      }
      case 'get':
        return { sandboxes: (request as ApiParsed<'get'>).ids.map((id) => this.#view(id)) };
      case 'list':
        return this.#list(request as ApiParsed<'list'>);
      case 'events': {
        const { id, afterVersion, limit } = request as ApiParsed<'events'>;
        const later = (this.#logs.get(id) ?? []).filter(({ commit }) => commit.version > afterVersion);
        return { commits: later.slice(0, limit).map(({ commit, sequence }) => ({ ...commit, streamSequence: sequence })), more: later.length > limit };
      }
      case 'pauseMany':
      case 'resumeMany':
        return this.#many(verb, request as ApiParsed<'pauseMany'>);
      default:
        return this.#lifecycle(verb, (request as { id: SandboxId }).id);
    }
  }

  #create({ key, count, mode, spec }: ApiParsed<'create'>): unknown {
    const requestId = requestIdFor(PROJECT, key, 1);
    const bodyHash = bodyHashOf({ count, spec });
    const known = this.#bodies.get(requestId);
    if (known !== undefined && known !== bodyHash) throw DsecError.of('KEY_CONFLICT', `key ${key} names another create`);
    if (spec.image === 'missing') throw DsecError.of('IMAGE_NOT_FOUND', 'no image missing; `dsec image ls` lists them');
    if (known === undefined) {
      this.#bodies.set(requestId, bodyHash);
      const resolved = specFor({ image: String(spec.image), labels: spec.labels });
      const isGroup = count > WIRE_LIMITS.maxCreatesPerMessage || mode === 'allOrNothing';
      setImmediate(() =>
        isGroup ? this.#placeGroup(key, requestId, count, mode, bodyHash, resolved) : this.#place(key, requestId, count, bodyHash, resolved),
      );
    }
    return { requestId, bodyHash };
  }

  /** Chunks one after another; an all-or-nothing group is given up when one of its items is refused everywhere. */
  #placeGroup(key: string, requestId: RequestId, count: number, mode: GroupMode, bodyHash: string, spec: SandboxState['spec']): void {
    const parent = (decision: GroupDecision | null): RequestState => ({
      ...requestState(key, [], bodyHash),
      group: { count, mode, decision, error: decision === 'abandon' ? wireError('NO_CAPACITY', 'every node refused') : null, chunks: [] },
    });
    this.#commitRequest(requestId, parent(null), 'GroupAccepted');
    if (mode === 'allOrNothing') {
      const abandoned = Array.from({ length: count }, (_, index) => index).some((index) => [0, 1, 2, 3].every((attempt) => this.faults.refuse(index, attempt)));
      this.#commitRequest(requestId, parent(abandoned ? 'abandon' : 'start'), 'GroupDecided');
      if (abandoned) return;
    }
    for (let n = 0; n < chunkCount(count); n += 1) {
      const id = chunkIdFor(requestId, n, 1);
      const items = this.#place(key, id, chunkSize(count, n), bodyHash, spec);
      const told = items.map((item, index): FakeItem => {
        const error = item.edge ? this.faults.fail(index) : undefined;
        return error ? { ...item, error } : { ...item, progress: 'run' };
      });
      this.#commitRequest(id, requestState(key, told, bodyHash, id), 'SandboxesRun');
    }
  }

  #place(key: string, requestId: RequestId, count: number, bodyHash: string, spec: SandboxState['spec']): readonly FakeItem[] {
    const items: FakeItem[] = Array.from({ length: count }, () => ({ attempt: 0, edge: EDGE }));
    this.#commitRequest(requestId, requestState(key, items, bodyHash, requestId), 'SandboxesAssigned');
    for (const [index, item] of items.entries()) {
      while (item.edge && this.faults.refuse(index, item.attempt)) {
        item.attempt += 1;
        if (item.attempt > 3) Object.assign(item, { edge: null, error: wireError('NO_CAPACITY', 'every node refused') });
        this.#commitRequest(requestId, requestState(key, items, bodyHash, requestId), item.edge ? 'SandboxesAssigned' : 'SandboxUnplaceable');
      }
      if (!item.edge) continue;
      const failure = this.faults.fail(index);
      const steps: [SandboxStatus, string][] = [['starting', 'SandboxAdmitted'], failure ? ['failed', 'SandboxFailed'] : ['running', 'SandboxStarted']];
      for (const [status, event] of steps)
        this.#commitSandbox(sandboxState(requestId, index, item.attempt, status, { spec, ...(failure ? { failure } : {}) }), event);
    }
    return items;
  }

  #lifecycle(verb: string, id: SandboxId): unknown {
    const state = this.#last(id)?.commit.state as SandboxState | undefined;
    if (!state) throw DsecError.of('SANDBOX_NOT_FOUND', `no sandbox ${id}`);
    const ended = state.status === 'stopped' || state.status === 'failed';
    if (verb === 'stop' || verb === 'delete') {
      if (ended) return { decision: 'ignored', reason: 'ended already' };
      this.#commitSandbox({ ...state, status: 'stopping', stopReason: 'requested' }, 'SandboxStopping');
      setImmediate(() => this.#commitSandbox({ ...state, status: 'stopped', stopReason: 'requested', pid: null }, 'SandboxStopped'));
      return { decision: 'accepted' };
    }
    if (ended) throw DsecError.of('SANDBOX_ENDED', `sandbox ${id} has ended`);
    if (verb === 'snapshot') {
      setImmediate(() => this.#commitSandbox(state, 'SandboxTransitionFailed', { error: wireError('NOT_SUPPORTED', 'snapshots are not supported yet') }));
    } else if (verb === 'pause' || verb === 'resume') {
      setImmediate(() =>
        this.#commitSandbox({ ...state, status: verb === 'pause' ? 'paused' : 'running' }, verb === 'pause' ? 'SandboxPaused' : 'SandboxResumed'),
      );
    }
    return { decision: 'accepted' };
  }

  #many(verb: 'pauseMany' | 'resumeMany', { ids, labels }: ApiParsed<'pauseMany'>): unknown {
    const [status, step] = verb === 'pauseMany' ? (['running', 'pause'] as const) : (['paused', 'resume'] as const);
    const isChosen = ({ status: now, spec }: SandboxState): boolean =>
      now === status && Object.entries(labels ?? {}).every(([key, value]) => spec.labels[key] === value);
    const chosen = ids ?? this.sandboxIds().filter((id) => isChosen(this.#last(id)?.commit.state as SandboxState));
    const items = chosen.map((id) => {
      try {
        return { id, decision: this.#lifecycle(step, id) };
      } catch (thrown) {
        return { id, error: toWireError(thrown) };
      }
    });
    return { items, next: null };
  }

  #list({ labels, statuses, after, limit }: ApiParsed<'list'>): unknown {
    const matches = (state: SandboxState): boolean =>
      (statuses.length === 0 || statuses.includes(state.status)) && Object.entries(labels).every(([key, value]) => state.spec.labels[key] === value);
    const ids = this.sandboxIds()
      .sort()
      .filter((id) => (after === undefined || id > after) && matches(this.#last(id)?.commit.state as SandboxState));
    return { sandboxes: ids.slice(0, limit).map((id) => this.#view(id)), next: ids.length > limit ? ids[limit - 1] : null, asOf: { 0: this.#sequence } };
  }

  async #op(op: string, id: SandboxId, request: unknown, body: Uint8Array): Promise<readonly [object, Uint8Array]> {
    const status = (this.#last(id)?.commit.state as SandboxState | undefined)?.status;
    if (!status) throw DsecError.of('SANDBOX_NOT_FOUND', `no sandbox ${id}`);
    if (status === 'stopped' && op === 'exec') throw DsecError.of('SANDBOX_ENDED', `sandbox ${id} has ended`);
    if (op === 'exec') return this.commands.exec(id, request as OpParsed<'exec'>, body);
    if (op === 'wait') return this.commands.wait(request as OpParsed<'wait'>);
    if (op === 'read') return this.commands.read(request as OpParsed<'read'>);
    if (op === 'signal') return [this.commands.signal(request as OpParsed<'signal'>), new Uint8Array(0)];
    if (op === 'stdin') return [this.commands.stdin(request as OpParsed<'stdin'>, body), new Uint8Array(0)];
    return [this.commands.list(), new Uint8Array(0)];
  }

  #last(id: string): Stored | undefined {
    return this.#logs.get(id)?.at(-1);
  }

  #view(id: SandboxId): unknown {
    const stored = this.#last(id);
    return stored ? { version: stored.commit.version, streamSequence: stored.sequence, state: stored.commit.state } : null;
  }

  #commitRequest(id: RequestId, state: object, event: string): void {
    this.#append(outSubject(requestAddress(PROJECT, id)), 'request', id, state, event);
  }

  #commitSandbox(state: SandboxState, event: string, more: object = {}): void {
    this.#append(outSubject(sandboxAddress(PROJECT, state.id)), 'sandbox', state.id, state, event, more);
  }

  #append(subject: string, kind: 'sandbox' | 'request', id: string, state: object, event: string, more: object = {}): void {
    const log = this.#logs.get(id) ?? [];
    this.#logs.set(id, log);
    const commit = commitOf(kind, id, log.length + 1, state, event, more);
    log.push({ commit, sequence: ++this.#sequence });
    const bytes = Buffer.from(JSON.stringify(commit));
    const publish = (): void => {
      if (!this.#nats.isClosed()) this.#nats.publish(subject, bytes);
    };
    const fate = this.faults.publish(commit);
    if (fate === 'late') setTimeout(publish, LATE_MS);
    else for (let n = fate === 'twice' ? 2 : fate === 'once' ? 1 : 0; n > 0; n -= 1) publish();
  }
}
