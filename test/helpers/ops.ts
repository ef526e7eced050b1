/** What a process shows to operators, asked as they do: over HTTP, at the address that it wrote into its run directory. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export type Metrics = {
  readonly text: string;
  /** Sum of the samples that carry the labels; 0 when there is none. */
  value(name: string, labels: Readonly<Record<string, string>>): number;
};
export type OpsOfProcess = {
  readonly address: string;
  json(path: string): Promise<{ readonly status: number; readonly body: unknown }>;
  metrics(): Promise<Metrics>;
};

/** `role` chooses among several processes of one directory. */
export const readOps = (runDir: string, role = ''): OpsOfProcess => {
  const file = readdirSync(runDir).find((name) => name.endsWith('.ops') && name.includes(role));
  if (!file) throw new Error(`no process with ${role || 'any role'} shows itself in ${runDir}`);
  const address = readFileSync(join(runDir, file), 'utf8').trim();
  const get = (path: string) => fetch(`http://${address}${path}`);
  return {
    address,
    json: async (path) => {
      const answer = await get(path);
      return { status: answer.status, body: await answer.json() };
    },
    metrics: async () => {
      const text = await (await get('/metrics')).text();
      return { text, value: (name, labels) => sumOf(text, name, labels) };
    },
  };
};

const sumOf = (text: string, name: string, labels: Readonly<Record<string, string>>): number =>
  text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .filter((line) => Object.entries(labels).every(([label, value]) => line.includes(`${label}="${value}"`)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
