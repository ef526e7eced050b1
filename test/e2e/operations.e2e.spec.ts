/** What operators see of a platform that runs: its fleet by `dsec top`, and who may see it. */
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { spawn as spawnTerminal } from 'node-pty';
import { afterAll, describe, expect, test } from 'vitest';
import { projectRoot } from '#runtime/project-root.ts';
import type { DsecClient } from '#sdk/mod.ts';
import { readOps } from '#test/helpers/ops.ts';
import { givenPlatform } from '#test/helpers/given.ts';
import type { TestPlatform } from '#test/helpers/platform.ts';

const run = promisify(execFile);
const PROGRAM = join(projectRoot(), 'build/dsec.mjs');
const SEEN_MS = 20_000;
const dir = mkdtempSync(join(tmpdir(), 'dsec-top-'));
let host: TestPlatform;
let owner: DsecClient;

afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});
givenPlatform({ overrides: { maxSandboxes: 2 } }, (given) => {
  ({ host, dsec: owner } = given);
});

const environment = () => ({ ...process.env, DSEC_CONTEXT: host.platform.contextFile });
const dsec = (...words: string[]) => run('node', [PROGRAM, ...words], { env: environment() });

describe('dsec top', () => {
  test('shows nodes, what they hold and what is refused', async () => {
    const boxes = await Promise.all([1, 2].map(() => owner.runContainer({ image: 'small' })));
    const full = await owner.runContainer({ image: 'small' }, { timeoutMs: 10_000 }).catch((thrown: unknown) => thrown);
    expect(full).toMatchObject({ code: 'NO_CAPACITY' });
    const once = async () => JSON.parse((await dsec('top', '--once', '--json')).stdout) as Awaited<ReturnType<DsecClient['admin']['fleet']>>;
    await expect.poll(async () => (await once()).edges[0]?.used?.sandboxes, { timeout: SEEN_MS }).toBe(2);
    const fleet = await once();
    expect(fleet.edges).toHaveLength(1);
    expect(fleet.edges[0]).toMatchObject({ edge: 'node-1', health: 'healthy', running: [{ project: 'default', sandboxes: 2 }], capacity: { sandboxes: 2 } });
    expect(fleet.totals).toMatchObject({ edges: 1, byHealth: { healthy: 1 }, used: { sandboxes: 2 } });
    expect(fleet.rates.started).toBeGreaterThan(0);
    const { stdout } = await dsec('top', '--once');
    expect(stdout).toMatch(
      /^dsec top · \S+ · nodes: 1 healthy; 1 of 1 take sandboxes\nreserved\/offered\/real: sandboxes 2\/2 · cpu .*\nover-committed · cpu offered ×/,
    );
    expect(stdout).toMatch(/^node-1 +healthy +yes +2\/2 .* container: default 2$/m);
    const edge = await readOps(host.platform.config.runDir, 'edge').metrics();
    expect(edge.value('dsec_edge_used', { resource: 'sandboxes' })).toBe(2);
    const control = await readOps(host.platform.config.runDir, 'apiserver').metrics();
    expect(control.value('dsec_creates_rejected_total', { code: 'NO_CAPACITY' })).toBe(1);
    await Promise.all(boxes.map((box) => box.stop()));
  }, 60_000);

  test('prints one document per refresh, and ends at Ctrl-C', async () => {
    const child = spawn('node', [PROGRAM, 'top', '--json'], { env: environment() });
    let printed = '';
    child.stdout.on('data', (bytes: Buffer) => {
      printed += bytes.toString('utf8');
    });
    await expect.poll(() => printed.split('\n').length, { timeout: SEEN_MS }).toBeGreaterThan(2);
    const ended = new Promise((resolve) => child.once('exit', (code) => resolve(code)));
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    for (const line of printed.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('totals');
  }, 60_000);

  test('fills the terminal, follows its size, and gives it back', async () => {
    const terminal = spawnTerminal('node', [PROGRAM, 'top'], { cols: 60, rows: 10, env: environment() as Record<string, string> });
    let shown = '';
    terminal.onData((data) => {
      shown += data;
    });
    const ended = new Promise((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)));
    await expect.poll(() => shown, { timeout: SEEN_MS }).toContain('node-1');
    expect(shown.startsWith('\u001b[?1049h\u001b[?25l')).toBe(true);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the terminal's own
    const lines = (text: string) => text.replace(/\u001b\[[?0-9]*[A-Za-z]/g, '').split(/\r?\n/);
    expect(Math.max(...lines(shown).map((line) => line.length))).toBeLessThanOrEqual(60);
    shown = '';
    terminal.resize(150, 30);
    await expect.poll(() => Math.max(...lines(shown).map((line) => line.length)), { timeout: SEEN_MS }).toBeGreaterThan(60);
    terminal.write('\u0003');
    expect(await ended).toBe(0);
    expect(shown.endsWith('\u001b[?25h\u001b[?1049l')).toBe(true);
  }, 60_000);
});

describe('who may see the fleet', () => {
  const contextOf = async (role: 'operator' | 'runner'): Promise<string> => {
    await owner.admin.createPrincipal(`a-${role}`, 'user');
    await owner.admin.grant(`default/a-${role}`, { role });
    const { context } = await owner.admin.issueCredential(`a-${role}`);
    const file = join(dir, `${role}.json`);
    writeFileSync(file, JSON.stringify(context));
    return file;
  };

  test('an operator of the first project does, one who runs sandboxes there does not', async () => {
    const [operator, runner] = [await contextOf('operator'), await contextOf('runner')];
    expect(JSON.parse((await dsec('top', '--once', '--json', '--context', operator)).stdout).edges).toHaveLength(1);
    await expect(dsec('top', '--once', '--context', runner)).rejects.toMatchObject({ code: 4, stderr: expect.stringContaining('it needs fleet.read') });
  }, 60_000);

  test('an owner of a project below does not', async () => {
    await owner.admin.createProject('team');
    await expect(dsec('top', '--once', '--project', 'team')).rejects.toMatchObject({ code: 4, stderr: expect.stringContaining('ask in project default') });
  }, 60_000);
});
