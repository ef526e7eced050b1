/**
 * Mixed work of a client that keeps a record of every command it was told had happened: creates under keys, commands that write
 * one line each, stops. What the record says is compared with the cluster afterwards (`audit.ts`).
 */
import { randomInt } from 'node:crypto';
import { type DsecClient, DsecError, type Sandbox } from '#sdk/mod.ts';

export type Kept = {
  readonly key: string;
  readonly sandbox: Sandbox;
  /** Lines that acknowledged commands have written; each command writes its own. */
  readonly written: string[];
  /** Lines of commands whose end was never known: they may be there, once. */
  readonly maybe: Set<string>;
  stopped: boolean;
};

export type Load = {
  readonly kept: Kept[];
  /** Commands that were acknowledged. */
  acked: number;
  /** Calls that ended with an error, by code: none of them is an acknowledgement. */
  readonly refused: Map<string, number>;
  /** Answers that contradict what was acknowledged before. */
  readonly lost: string[];
  readonly doubled: string[];
};

export const newLoad = (): Load => ({ kept: [], acked: 0, refused: new Map(), lost: [], doubled: [] });

export type LoadOptions = {
  readonly dsec: DsecClient;
  readonly load: Load;
  readonly tag: string;
  readonly workers: number;
  readonly until: () => boolean;
};

/** Commands that a sandbox gets before it is stopped: enough to meet several kills at once in a busy minute. */
const COMMANDS_MAX = 12;
/** Sandboxes that are left running to the end, of ten, while there are few: what is long-lived meets every kill. */
const LEFT_OF_TEN = 2;
const LEFT_MAX = 50;
const CALL_MS = 180_000;

export const runLoad = async (o: LoadOptions): Promise<void> => {
  await Promise.all(Array.from({ length: o.workers }, (_, worker) => runWorker(o, worker)));
};

const runWorker = async (o: LoadOptions, worker: number): Promise<void> => {
  for (let n = 0; !o.until(); n += 1) {
    const key = `${o.tag}-${worker}-${n}`;
    const group = n % 4 === 3 ? await createGroup(o, key) : await createOne(o, key);
    for (const kept of group) await useAndStop(o, kept);
  }
};

const createOne = async ({ dsec, load }: LoadOptions, key: string): Promise<Kept[]> => {
  const sandbox = await tried(load, () => dsec.runContainer({ image: 'small', memoryLimitMb: 32, key, labels: { key } }, { timeoutMs: CALL_MS }));
  return sandbox ? [keep(load, key, sandbox)] : [];
};

const createGroup = async ({ dsec, load }: LoadOptions, key: string): Promise<Kept[]> => {
  const count = 3;
  const group = await tried(load, () => dsec.runContainers({ image: 'small', memoryLimitMb: 32, key, labels: { key } }, { count, timeoutMs: CALL_MS }));
  for (const { error } of group?.failures ?? []) note(load, error);
  return (group?.sandboxes ?? []).map((sandbox) => keep(load, key, sandbox));
};

const keep = (load: Load, key: string, sandbox: Sandbox): Kept => {
  const kept: Kept = { key, sandbox, written: [], maybe: new Set(), stopped: false };
  load.kept.push(kept);
  load.acked += 1;
  return kept;
};

const useAndStop = async (o: LoadOptions, kept: Kept): Promise<void> => {
  for (let n = randomInt(COMMANDS_MAX); n >= 0; n -= 1) if (!(await write(o.load, kept, `${kept.key}-${n}`))) return;
  await checkLines(o.load, kept);
  const living = o.load.kept.filter(({ stopped }) => !stopped).length;
  if (living < LEFT_MAX && randomInt(10) < LEFT_OF_TEN) return;
  const ended = await tried(o.load, () => kept.sandbox.stop({ timeoutMs: CALL_MS }));
  if (ended === undefined) return;
  kept.stopped = true;
  o.load.acked += 1;
};

/** A line is appended: done twice it is there twice. */
const write = async (load: Load, kept: Kept, line: string): Promise<boolean> => {
  kept.maybe.add(line);
  const result = await tried(load, () => kept.sandbox.exec(['sh', '-c', `echo ${line} >> /w/lines`], { key: line }));
  if (!result) return false;
  if (result.exitCode !== 0) {
    note(
      load,
      new DsecError({ code: 'INTERNAL', message: `exit ${result.exitCode} ${result.reason}`, outcome: 'applied', retry: 'never', fault: 'infra', details: {} }),
    );
    return true;
  }
  kept.maybe.delete(line);
  kept.written.push(line);
  load.acked += 1;
  return true;
};

export const checkLines = async (load: Load, kept: Kept): Promise<void> => {
  const result = await tried(load, () => kept.sandbox.exec(['sh', '-c', 'cat /w/lines 2>/dev/null; true']));
  if (result?.exitCode !== 0) return;
  const counts = new Map<string, number>();
  for (const line of result.stdout.split('\n').filter(Boolean)) counts.set(line, (counts.get(line) ?? 0) + 1);
  for (const line of kept.written) if (!counts.has(line)) load.lost.push(`${kept.sandbox.id}: ${line}`);
  for (const [line, count] of counts) if (count > 1) load.doubled.push(`${kept.sandbox.id}: ${line} ${count} times`);
};

/** The answer, or undefined when the call ended with an error of the platform. */
const tried = async <T>(load: Load, call: () => Promise<T>): Promise<T | undefined> => {
  try {
    return await call();
  } catch (thrown) {
    if (!(thrown instanceof DsecError)) throw thrown;
    note(load, thrown);
    return undefined;
  }
};

const note = (load: Load, { code, message }: Pick<DsecError, 'code' | 'message'>): void => {
  load.refused.set(code, (load.refused.get(code) ?? 0) + 1);
  if (process.env['CHAOS_VERBOSE']) process.stderr.write(`chaos: ${new Date().toISOString()} ${code}: ${message}\n`);
};
