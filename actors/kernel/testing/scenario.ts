/**
 * Runs an actor through the real host over a model log, one command after the other. Every scenario is worth running twice:
 * the second time with the actor dropped from memory before every step, so that nothing may depend on what is not committed.
 */
import type { ActorAddress } from '#bus/subjects.ts';
import type { TimestampMs } from '#bus/units.ts';
import type { StoredCommit } from '../../ports/event-log.ts';
import type { ActorDefinition, Deadline, Effect } from '../definition.ts';
import { ActorHost, type CommandMeta, type CommandResult, type HostInput, type HostOutput } from '../host.ts';
import { type Fault, ModelLog } from './model-log.ts';

export type Step<C> = { readonly command: C; readonly at: number; readonly meta?: Partial<CommandMeta>; readonly faults?: readonly Fault[] };
export type Adopted<S, F> = { readonly state: S; readonly effects: readonly F[]; readonly deadlines: readonly Deadline[]; readonly over: boolean };

export class Scenario<S extends object, C extends { readonly type: string }, E extends { readonly type: string }, F extends Effect> {
  readonly log: ModelLog;
  readonly host: ActorHost<S, C, E, F>;
  readonly results: CommandResult[] = [];
  adopted: Adopted<S, F> | undefined;
  /** Names of the host's outputs in order, to see what happened before what. */
  readonly trace: string[] = [];
  readonly #definition: ActorDefinition<S, C, E, F>;
  readonly #address: ActorAddress;
  #commands = 0;

  constructor(definition: ActorDefinition<S, C, E, F>, address: ActorAddress, log = new ModelLog()) {
    this.#definition = definition;
    this.#address = address;
    this.host = new ActorHost(definition);
    this.log = log;
  }

  run(steps: readonly Step<C>[], options: { readonly evictBeforeEachStep?: boolean } = {}): this {
    for (const step of steps) {
      if (options.evictBeforeEachStep && !this.host.evict(this.#address)) throw new Error('an idle actor could not be evicted');
      this.give(step);
    }
    return this;
  }

  give({ command, at, meta = {}, faults = [] }: Step<C>): CommandResult {
    this.#commands += 1;
    const commandId = `cmd-${this.#commands}`;
    const whole: CommandMeta = { commandId, correlationId: commandId, principal: 'tester', ...meta, at: at as TimestampMs };
    const before = this.results.length;
    this.#pump({ type: 'command', address: this.#address, command, meta: whole, token: this.#commands }, [...faults]);
    const result = this.results[before];
    if (!result) throw new Error(`${command.type} was not answered`);
    return result;
  }

  get history(): readonly StoredCommit[] {
    return this.log.history(this.#address);
  }

  /** State as the next process would find it. */
  get stored(): S | null {
    const last = this.log.last(this.#address);
    return last && this.#definition.parseState(last.commit.state, last.commit.schema);
  }

  #pump(first: HostInput<C>, faults: Fault[]): void {
    const inputs: HostInput<C>[] = [first];
    for (let input = inputs.shift(); input; input = inputs.shift())
      for (const output of this.host.step(input)) {
        this.trace.push(output.type);
        const next = this.#perform(output, faults);
        if (next) inputs.push(next);
      }
  }

  #perform(output: HostOutput<S, F>, faults: Fault[]): HostInput<C> | undefined {
    switch (output.type) {
      case 'load':
        return { type: 'loaded', address: output.address, stored: this.log.last(output.address) };
      case 'append':
        return { type: 'appended', address: output.request.address, outcome: this.log.append(output.request, faults.shift()) };
      case 'recall': {
        const commits = this.history.filter(({ commit }) => commit.version > output.afterVersion).slice(0, output.limit);
        return { type: 'recalled', address: output.address, commits };
      }
      case 'reply':
        this.results.push(output.result);
        return undefined;
      case 'adopted':
        this.adopted = { state: output.state, effects: output.effects, deadlines: output.deadlines, over: output.over };
        return undefined;
    }
  }
}
