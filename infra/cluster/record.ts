/** What a running cluster says of itself in `<dir>/cluster.json`, for those who look from outside. */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Cluster } from './cluster.ts';

const ClusterRecord = z.object({
  pid: z.number().int().positive(),
  contextFile: z.string(),
  operatorConfig: z.string(),
  urls: z.array(z.string()),
  edges: z.array(z.string()),
  members: z.array(z.object({ name: z.string(), kind: z.string(), pid: z.number().int().nullable() })),
});
export type ClusterRecord = z.infer<typeof ClusterRecord>;

/** Processes that die are started again under other ids. */
const REFRESH_MS = 1_000;

const fileIn = (dir: string): string => join(dir, 'cluster.json');

/** Writes the record, and again whenever it changes, until the returned function is called. */
export const keepRecord = (dir: string, cluster: Cluster): (() => void) => {
  let written = '';
  const write = (): void => {
    const members = cluster.members.map(({ name, kind, pid }) => ({ name, kind, pid: pid() ?? null }));
    const { contextFile, operatorConfig, urls, edges } = cluster;
    const record: ClusterRecord = { pid: process.pid, contextFile, operatorConfig, urls: [...urls], edges: [...edges], members };
    const text = `${JSON.stringify(record, null, 2)}\n`;
    if (text === written) return;
    writeFileSync(`${fileIn(dir)}.new`, text, { mode: 0o600 });
    renameSync(`${fileIn(dir)}.new`, fileIn(dir));
    written = text;
  };
  write();
  const timer = setInterval(write, REFRESH_MS);
  return () => clearInterval(timer);
};

export const readRecord = (dir: string): ClusterRecord | undefined =>
  existsSync(fileIn(dir)) ? ClusterRecord.parse(JSON.parse(readFileSync(fileIn(dir), 'utf8'))) : undefined;

export const removeRecord = (dir: string): void => rmSync(fileIn(dir), { force: true });

/** Whether the supervisor that wrote the record still runs. */
export const isRunning = (dir: string): boolean => {
  const pid = readRecord(dir)?.pid;
  if (pid === undefined) return false;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('cluster');
  } catch {
    return false;
  }
};
