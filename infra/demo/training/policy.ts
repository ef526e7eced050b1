/**
 * A policy small enough to learn on one core in minutes: for each observation a row of preferences over the actions, chosen by
 * softmax, moved by REINFORCE with the group's mean reward as baseline. Its state is one JSON file, so that a trainer which is
 * killed goes on with what it had learnt.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

/** What the policy saw and did at one turn. */
export type Choice = { readonly observation: string; readonly action: number };
export type Episode = { readonly id: string; readonly group: string; readonly reward: number; readonly choices: readonly Choice[] };

type Saved = { readonly preferences: Record<string, number[]>; readonly baselines: Record<string, number>; readonly learnt: readonly string[] };

const LEARNING_RATE = 2.5;
/** Share of the newest reward in a group's running mean. */
const BASELINE_RATE = 0.2;

export class Policy {
  readonly #preferences = new Map<string, number[]>();
  readonly #baselines = new Map<string, number>();
  readonly #actions: number;
  readonly #random: () => number;
  /** Episodes by their id: none is learnt from twice, whoever was killed in between. */
  readonly #learnt = new Set<string>();

  constructor(actions: number, random: () => number = Math.random) {
    this.#actions = actions;
    this.#random = random;
  }

  static load(file: string, actions: number, random?: () => number): Policy {
    const policy = new Policy(actions, random);
    if (!existsSync(file)) return policy;
    const saved = JSON.parse(readFileSync(file, 'utf8')) as Saved;
    for (const [observation, row] of Object.entries(saved.preferences)) policy.#preferences.set(observation, row);
    for (const [group, mean] of Object.entries(saved.baselines)) policy.#baselines.set(group, mean);
    for (const id of saved.learnt) policy.#learnt.add(id);
    return policy;
  }

  /** Whole or not at all. */
  save(file: string): void {
    const saved: Saved = {
      preferences: Object.fromEntries(this.#preferences),
      baselines: Object.fromEntries(this.#baselines),
      learnt: [...this.#learnt],
    };
    writeFileSync(`${file}.new`, JSON.stringify(saved));
    renameSync(`${file}.new`, file);
  }

  get episodes(): number {
    return this.#learnt.size;
  }

  hasLearntFrom(id: string): boolean {
    return this.#learnt.has(id);
  }

  choose(observation: string): number {
    const chances = this.chances(observation);
    let left = this.#random();
    for (const [action, chance] of chances.entries()) {
      left -= chance;
      if (left < 0) return action;
    }
    return chances.length - 1;
  }

  chances(observation: string): number[] {
    const row = this.#row(observation);
    const most = Math.max(...row);
    const weights = row.map((preference) => Math.exp(preference - most));
    const sum = weights.reduce((a, b) => a + b, 0);
    return weights.map((weight) => weight / sum);
  }

  learn({ id, group, reward, choices }: Episode): void {
    const baseline = this.#baselines.get(group) ?? 0;
    for (const { observation, action } of choices) {
      const chances = this.chances(observation);
      const row = this.#row(observation);
      for (const [a, chance] of chances.entries()) row[a] = (row[a] ?? 0) + LEARNING_RATE * (reward - baseline) * ((a === action ? 1 : 0) - chance);
    }
    this.#baselines.set(group, baseline + BASELINE_RATE * (reward - baseline));
    this.#learnt.add(id);
  }

  #row(observation: string): number[] {
    const row = this.#preferences.get(observation) ?? new Array<number>(this.#actions).fill(0);
    this.#preferences.set(observation, row);
    return row;
  }
}
