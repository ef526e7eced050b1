/**
 * A few nodes, a few hundred sandboxes, every fault that the seed draws: two minutes of virtual life, then none and everything
 * ends. Small enough that fifty seeds belong to every `npm test`.
 */
import type { ClientKey, ProjectName, SnapshotId } from '#bus/ids.ts';
import type { ProjectState } from '#bus/project/schema.ts';
import type { SandboxBusCommand } from '#bus/sandbox/commands.ts';
import type { DurationMs } from '#bus/units.ts';
import type { QuotaAmounts } from '#bus/project/quota.ts';
import { Injector } from '../faults/injector.ts';
import { drawSwarm, type Swarm } from '../faults/swarm.ts';
import type { ProjectPlan } from '../hosts/iam.ts';
import type { Parts } from '../hosts/parts.ts';
import { Process } from '../hosts/process.ts';
import { Random } from '../kernel/random.ts';
import type { Trace } from '../kernel/trace.ts';
import { GOOD_LINK } from '../ports/link.ts';
import { commitOf, entryOf } from '../ports/event-store.ts';
import { specOf } from '../workload/spec.ts';
import { type GroupPlan, Tenant } from '../workload/tenant.ts';
import { Trainer } from '../workload/trainer.ts';
import { guarded, Run, type RunOptions, type RunResult } from './run.ts';
import { capacityOf } from './capacity.ts';

export const SMOKE = {
  safetyMs: 120_000,
  /** Longest chain after the last fault: a lease and its grace, a launch's deadline, a stop's, redeliveries after 30 s each. */
  livenessMs: 600_000,
  groups: 18,
  groupMax: 40,
} as const;

export type SmokeOptions = {
  readonly parts?: Partial<Parts>;
  readonly trace?: Trace;
  readonly swarm?: (drawn: Swarm) => Swarm;
  readonly onRun?: (run: Run) => void;
  readonly observers?: RunOptions['observers'];
};

export const smoke = (seed: number, options: SmokeOptions = {}): RunResult => {
  const random = Random.fromSeed(seed).child('smoke');
  const drawn = drawSwarm(random.child('swarm'));
  const swarm = options.swarm?.(drawn) ?? drawn;
  const sizes = random.child('sizes');
  const hasJobs = random.child('jobs').chance(500);
  const run = new Run({
    seed,
    ...(options.trace ? { trace: options.trace } : {}),
    ...(options.parts ? { parts: options.parts } : {}),
    ...(options.observers ? { observers: options.observers } : {}),
    tiebreak: swarm.tiebreak,
    keeping: 'exact',
    nodes: sizes.between(3, 8),
    capacity: capacityOf({ sandboxes: sizes.between(20, 80), memoryMiB: sizes.between(8, 64) * 1_024 }),
    apiservers: 2,
    placements: sizes.between(1, 3),
    watchers: 2,
    shards: sizes.between(1, 3),
    lanes: sizes.between(1, 4),
    viewAgeMs: sizes.pick([0, 0, 500, 3_000]),
    clockOf: swarm.clockOf,
    linkOf: swarm.linkOf,
    machineOf: swarm.machineOf,
    ...quotasOf(random.child('quotas')),
    jobs: hasJobs ? 2 : 0,
    hasLayerStore: random.child('layers').chance(500),
    missingLayer: (layers) => (injector.isOn && layers.chance(swarm.missingLayerPerMille) ? 'sha256:absent' : null),
  });
  options.onRun?.(run);
  const { cluster } = run;
  const injector = new Injector(cluster, swarm, random.child('faults'));
  return guarded(run, () => {
    cluster.start();
    injector.start();
    const tenants = ['acme', 'beta', 'core'].map((name) => tenantOf(run, name, swarm, random.child(`tenant ${name}`)));
    const trainers = hasJobs ? tenants.map((tenant) => trainerOf(run, tenant, random.child(`trainer ${tenant.project}`))) : [];
    run.until(SMOKE.safetyMs, SMOKE.safetyMs);
    injector.stop();
    for (const trainer of trainers) trainer.stop();
    for (const tenant of tenants) tenant.finish();
    run.untilQuiet(SMOKE.safetyMs + SMOKE.livenessMs, () => tenants.every(({ left }) => left === 0) && leasesLeft(run) === 0);
    run.check();
  });
};

/** Of quota, in the books of projects. */
const leasesLeft = ({ cluster }: Run): number => {
  let left = 0;
  for (const message of cluster.ground.store.actors())
    if (message.address.kind === 'project') left += (commitOf(entryOf(message))?.commit.state as ProjectState | undefined)?.leases.length ?? 0;
  return left;
};

/**
 * Every other seed has quotas, small ones: two projects below one that cannot have both of theirs in full, one of its own. Several IAM
 * processes lend, several placements race for what is left.
 */
const quotasOf = (random: Random): { readonly projects?: readonly ProjectPlan[]; readonly iams?: number } => {
  if (!random.chance(500)) return {};
  const [org, acme, beta, core] = ['org', 'acme', 'beta', 'core'] as ProjectName[] as [ProjectName, ProjectName, ProjectName, ProjectName];
  const limits = (): QuotaAmounts => (random.chance(700) ? { sandboxes: random.between(3, 30) } : { memoryMiB: random.between(2, 16) * 1_024 });
  const projects = [
    { name: org, ancestors: [], limits: { sandboxes: random.between(5, 40) } },
    { name: acme, ancestors: [org], limits: limits() },
    { name: beta, ancestors: [org], limits: random.chance(300) ? {} : limits() },
    { name: core, ancestors: [], limits: random.chance(300) ? {} : limits() },
  ];
  return { projects, iams: random.between(1, 3) };
};

const tenantOf = (run: Run, name: string, swarm: Swarm, random: Random): Tenant => {
  const { cluster } = run;
  const process = new Process(`tenant-${name}`, cluster.ground, random, GOOD_LINK, swarm.clockOf(random.child('clock')));
  const tenant = new Tenant(cluster, process, name as ProjectName);
  for (let n = 0; n < SMOKE.groups / 3; n += 1) {
    const plan = planOf(`${name}-${n}`, random.child(`group ${n}`));
    const atMs = random.between(2_000, SMOKE.safetyMs - 10_000);
    cluster.time.after(atMs * 1_000, 'group', () => tenant.create(plan));
    if (swarm.families.has('tenant') && random.chance(300))
      cluster.time.after((atMs + random.between(0, 20_000)) * 1_000, 'misuse', () => tenant.misuse({ ...plan, count: plan.count + 1 }, () => {}));
  }
  return tenant;
};

/** A job beside what its project does without one. Its owner may vanish in the middle, for a while or for good. */
const trainerOf = ({ cluster }: Run, tenant: Tenant, random: Random): Trainer => {
  const plan = {
    key: `${tenant.project}-job` as ClientKey,
    lifeMs: random.pick([60_000, 3_600_000, 86_400_000]),
    leaseMs: random.between(3_000, 20_000),
    graceMs: random.pick([0, 0, 5_000]),
    onOwnerLost: random.pick(['keep', 'pause', 'stop'] as const),
    groups: Array.from({ length: random.between(1, 3) }, (_, n) => planOf(`${tenant.project}-member-${n}`, random.child(`group ${n}`))),
  };
  const trainer = new Trainer(cluster, tenant, plan, random.child('lives'));
  const startMs = random.between(2_000, SMOKE.safetyMs / 2);
  cluster.time.after(startMs * 1_000, 'job', () => trainer.start());
  if (random.chance(600)) cluster.time.after((startMs + random.between(0, 40_000)) * 1_000, 'preempted', () => trainer.preempt());
  if (random.chance(500)) cluster.time.after((startMs + random.between(40_000, 60_000)) * 1_000, 'back', () => trainer.comeBack());
  return trainer;
};

const planOf = (key: string, random: Random): GroupPlan => {
  const useMs = random.between(100, 60_000);
  const spec = specOf({
    memoryMiB: random.pick([128, 256, 512, 2_048]),
    cpuMillis: random.pick([500, 1_000, 4_000]),
    totalMs: random.pick([20_000, 120_000, 86_400_000]),
    idleMs: random.chance(300) ? random.between(2_000, 30_000) : null,
    layers: random.child('layers').between(1, 4),
  });
  return {
    key: key as ClientKey,
    count: random.chance(200) ? random.between(1, SMOKE.groupMax) : random.between(1, 12),
    spec,
    timeoutMs: random.pick([10_000, 60_000, 300_000]),
    useMs: (index) => random.child(`use ${index}`).between(0, useMs),
    asks: (index) => asksOf(random.child(`asks ${index}`)),
    endBy: random.pick(['StopSandbox', 'DeleteSandbox']),
  };
};

const asksOf = (random: Random): { afterMs: number; command: SandboxBusCommand }[] => {
  const commands: SandboxBusCommand[] = [
    { type: 'PauseSandbox' },
    { type: 'ResumeSandbox' },
    { type: 'SnapshotSandbox', snapshotId: `snap-${random.between(1, 3)}` as SnapshotId, scrub: [], purpose: 'keep' },
    { type: 'ExtendLives', totalMs: random.between(10_000, 300_000) as DurationMs },
    { type: 'ExtendLives', idleMs: random.between(5_000, 60_000) as DurationMs },
    { type: 'StopSandbox', reason: 'requested' },
  ];
  return Array.from({ length: random.between(0, 4) }, () => ({ afterMs: random.between(0, 30_000), command: random.pick(commands) }));
};
