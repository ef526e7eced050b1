/**
 * Snapshots of a sandbox's writable layer (`pack_diff`): what is asked for, what became of it. @paper §6.1
 *
 * A snapshot is named within its project and stands for a whole stack: the layers that its sandbox stood on, and the one that was
 * made of what it had written.
 */
import { z } from 'zod';
import { LayerDigest, SandboxId, SnapshotId } from '../ids.ts';
import { SNAPSHOT_LIMITS } from '../limits.ts';
import { TimestampMs } from '../units.ts';

/** A path below `/` that a snapshot leaves out with all below it; `*` and `?` within a name, `**` for any number of names. */
export const ScrubRule = z
  .string()
  .regex(/^\/[^\0\n]+$/, 'a scrub rule is a path that begins with /')
  .refine((rule) => Buffer.byteLength(rule) <= SNAPSHOT_LIMITS.ruleBytes, `a scrub rule holds at most ${SNAPSHOT_LIMITS.ruleBytes} bytes`)
  .refine((rule) => rule.split('/').length <= SNAPSHOT_LIMITS.ruleParts, `a scrub rule has at most ${SNAPSHOT_LIMITS.ruleParts} components`);
export const ScrubRules = z.array(ScrubRule).max(SNAPSHOT_LIMITS.rules);
export type ScrubRules = z.infer<typeof ScrubRules>;

/** One thing that a rule removed: the topmost path that matched. */
export const Removed = z.object({ rule: z.string(), path: z.string() });
export type Removed = z.infer<typeof Removed>;

/** How it went. `storedBytes`: what was new in the store; `sharedBytes`: content that lay there already. */
export const SnapshotFacts = z.object({
  files: z.number().int().nonnegative().default(0),
  contentBytes: z.number().int().nonnegative().default(0),
  storedBytes: z.number().int().nonnegative().default(0),
  sharedBytes: z.number().int().nonnegative().default(0),
  /** How long the sandbox stood still; 0 when it was paused anyway. */
  frozenMs: z.number().nonnegative().default(0),
  totalMs: z.number().nonnegative().default(0),
  removedCount: z.number().int().nonnegative().default(0),
  removed: z.array(Removed).max(SNAPSHOT_LIMITS.removedTold).default([]),
});
export type SnapshotFacts = z.infer<typeof SnapshotFacts>;
export const NO_FACTS: SnapshotFacts = SnapshotFacts.parse({});

/**
 * `keep`: named in the project until somebody removes it. `fork`: only for sandboxes that are made from it right away; it has no name
 * and goes when the last of them has ended.
 */
export const SnapshotPurpose = z.enum(['keep', 'fork']);
export type SnapshotPurpose = z.infer<typeof SnapshotPurpose>;

/** What a sandbox's state keeps of a snapshot; the facts are in the event. */
export const SnapshotMade = z.object({ id: SnapshotId, layer: LayerDigest, at: TimestampMs, purpose: SnapshotPurpose.default('keep') });
export type SnapshotMade = z.infer<typeof SnapshotMade>;

/** A snapshot as its project sees it. */
export const SnapshotView = z.object({
  id: SnapshotId,
  sandboxId: SandboxId,
  at: TimestampMs,
  /** Lowest first; the last one is the snapshot's own. */
  layers: z.array(LayerDigest).min(1),
  facts: SnapshotFacts,
});
export type SnapshotView = z.infer<typeof SnapshotView>;

/**
 * Removed when a snapshot is asked for with `scrub: standard`: what builders leave behind and what no reader of an environment
 * should find (@paper §6.1, §6.4).
 */
export const STANDARD_SCRUB_RULES: readonly string[] = [
  '/tmp/**',
  '/var/tmp/**',
  '/var/cache/apt/archives/**',
  '/var/lib/apt/lists/**',
  '/var/log/**',
  '/**/.bash_history',
  '/**/.ash_history',
  '/**/.zsh_history',
  '/**/.python_history',
  '/**/.node_repl_history',
  '/**/.sqlite_history',
  '/**/.lesshst',
  '/**/.viminfo',
  '/**/.wget-hsts',
  '/**/.cache',
  '/**/.npm/_cacache',
  '/**/.npm/_logs',
  '/**/__pycache__',
  '/**/.pytest_cache',
  '/**/.ssh/id_*',
  '/**/.ssh/known_hosts',
  '/**/.netrc',
  '/**/.git-credentials',
  '/**/.aws/credentials',
  '/**/.docker/config.json',
];
