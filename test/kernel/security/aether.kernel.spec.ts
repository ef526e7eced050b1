/** Root inside against the platform's agent: PID 1, and the copies of it that become commands. @paper §6.4 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Command, Sandbox } from '#sdk/mod.ts';
import { denied, Lab, neverSucceeded, type Outcomes } from './lab.ts';

/** What a process that may not be looked into answers; the rest is refused with EACCES, by the owner of its files in /proc. */
const LIMITS = ['prlimit files', 'prlimit file size', 'prlimit cpu'];
const UNTOUCHABLE = {
  EACCES: [
    ...[
      'mem read',
      'mem write',
      'maps',
      'smaps',
      'pagemap',
      'auxv',
      'environ',
      'fd list',
      'fdinfo',
      'fd open',
      'map_files',
      'exe link',
      'exe read',
      'exe write',
    ],
    ...['root link', 'root open', 'cwd', 'ns link', 'ns open', 'io', 'clear_refs', 'oom_score_adj', 'coredump_filter'],
  ],
  EPERM: [
    ...['ptrace attach', 'ptrace seize', 'timerslack_ns', 'process_vm_readv', 'process_vm_writev', 'pidfd_getfd', 'setns by pidfd', 'process_madvise'],
    ...['move_pages', 'kcmp', 'get_robust_list', 'setpriority', 'sched_setaffinity', 'sched_setattr', 'sched_setscheduler', 'ioprio_set'],
  ],
} as const;
const untouched = (extra: Readonly<Record<string, readonly string[]>>): Outcomes => new Map([...denied(UNTOUCHABLE), ...denied(extra)]);
const NOBODY_THERE: Outcomes = new Map([['missed', 'ok']]);
/** Chances to catch a command between fork and exec; nearly every one does. */
const SHOTS_MAX = 60;

let lab: Lab;
let box: Sandbox;
let aether: number;

beforeAll(async () => {
  lab = await Lab.open();
  box = await lab.sandbox();
  aether = await lab.aetherPid(box);
});
afterAll(async () => lab?.close());

const outputOf = async (command: Command): Promise<string> => {
  let text = '';
  for await (const piece of command.stdout.text()) text += piece;
  return text;
};

/** A command that waits, and its process id inside. */
const startVictim = async (user: string): Promise<{ command: Command; pid: string }> => {
  const command = await box.start('echo $$; exec sleep 1000', { user });
  for await (const piece of command.stdout.text()) return { command, pid: piece.trim() };
  throw new Error('the victim said nothing');
};

const expectAetherWell = async (): Promise<void> => {
  expect(await lab.aetherPid(box)).toBe(aether);
  expect(Lab.status(aether, 'State')).toMatch(/^[RSD]/); // neither stopped nor traced; it may be at work at this very moment
  expect(Lab.status(aether, 'TracerPid')).toBe('0');
  expect(await box.runShell('echo well')).toMatchObject({ stdout: 'well\n', reason: 'exited', exitCode: 0 });
};

describe('Aether', () => {
  test('root inside cannot read, trace, enter, slow down or limit it', async () => {
    expect(await lab.inside(box, ['process', '1'])).toEqual(untouched({ EPERM: LIMITS }));
    await expectAetherWell();
  });

  test('nor can another user', async () => {
    expect(await lab.inside(box, ['process', '1'], { user: 'agent' })).toEqual(untouched({ EPERM: LIMITS }));
  });

  test('control: each of these attempts succeeds against a process of one’s own, inside or in a namespace of the host', async () => {
    const inside = await lab.inside(box, ['process', 'child']);
    expect(neverSucceeded(denied(UNTOUCHABLE), [inside, lab.outside('process', 'child')])).toEqual([]);
    expect(LIMITS.map((name) => inside.get(name))).toEqual(['ok', 'ok', 'ok']);
  });

  test('no signal reaches it, by any call, for all that they are accepted', async () => {
    const sent = await lab.inside(box, ['process', 'signals', '1']);
    expect([...sent.keys()]).toEqual(['kill', 'tgkill', 'rt_sigqueueinfo', 'pidfd_send_signal']);
    await expectAetherWell();
  });

  test('control: the same signals end a command', async () => {
    const { command, pid } = await startVictim('root');
    await lab.inside(box, ['process', 'signals', pid]);
    expect(await command.wait()).toMatchObject({ reason: 'signaled' });
  });

  test('its program can be run as a command, and then is nobody: it serves nothing and cannot be written', async () => {
    const again = await box.exec(['/proc/self/exe', '60'], { timeoutMs: 5_000 });
    expect(again.exitCode).toBe(1);
    const link = await box.runShell('ln -s /proc/self/exe /w/again; echo x > /proc/self/exe');
    expect(link.stderr).toMatch(/busy|denied/i); // busy: what the shell has there is busybox
    expect((await box.exec(['/w/again', '60'], { timeoutMs: 5_000 })).exitCode).toBe(1);
    await expectAetherWell();
  });

  test('a working directory cannot be one of its descriptors', async () => {
    for (let fd = 3; fd < 16; fd++) {
      const call = box.exec(['true'], { cwd: `/proc/self/fd/${fd}` });
      await expect(call).rejects.toMatchObject({ code: 'CWD_NOT_FOUND' });
    }
  });
});

describe('a command that is still a copy of Aether', () => {
  test('is as closed as Aether itself; only its own limits may be set, as those of the command it becomes', async () => {
    const sniper = await box.start(['/probe/process', 'sniper']);
    let missing = true;
    const text = outputOf(sniper).finally(() => {
      missing = false;
    });
    for (let shot = 0; missing && shot < SHOTS_MAX; shot++) await box.exec(['true'], { timeoutMs: 15_000 });
    const outcomes: Outcomes = new Map(
      (await text)
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t', 2) as [string, string]),
    );
    expect(outcomes).not.toEqual(NOBODY_THERE);
    expect(outcomes).toEqual(untouched({ ok: LIMITS }));
  });
});

describe('the worker that serves files', () => {
  test('is a copy that stays: its memory, descriptors and program are closed; only its own limits and priorities may be set', async () => {
    const watch = await box.files.watch('/w');
    const find = 'for p in /proc/[0-9]*; do [ $p != /proc/1 ] && grep -q -x -f /proc/1/comm $p/comm && echo $p; done';
    const pid = (await box.runShell(find)).stdout.trim().replace('/proc/', '');
    expect(pid).toMatch(/^\d+$/);
    const ADJUSTABLE = ['setpriority', 'sched_setaffinity', 'sched_setscheduler', 'ioprio_set'];
    expect(await lab.inside(box, ['process', pid])).toEqual(untouched({ ok: [...LIMITS, ...ADJUSTABLE] }));
    const rights = await box.runShell(`grep -E "CapPrm|CapEff|Seccomp:" /proc/${pid}/status`);
    expect(rights.stdout.replaceAll('\t', ' ')).toBe('CapPrm: 00000000a80405fb\nCapEff: 00000000a80405fb\nSeccomp: 2\n');
    watch.close();
  });

  test('is not led by links to what it is itself: its program, memory and descriptors', async () => {
    for (const [name, target] of Object.entries({ program: 'exe', memory: 'mem', connection: 'fd/3', environment: 'environ' })) {
      await box.runShell(`ln -s /proc/self/${target} /w/${name}`);
      await expect(box.files.read(`/w/${name}`, { limit: 4_096 }), name).rejects.toMatchObject({ name: 'DsecError' });
      await expect(box.files.append(`/w/${name}`, 'x'), name).rejects.toMatchObject({ name: 'DsecError' });
    }
    await box.runShell('ln -s /proc/self/fd /w/descriptors');
    const targets = await Promise.all((await box.files.list('/w/descriptors')).map((entry) => entry.target));
    expect(targets.filter((target) => target?.startsWith('/') && !/^\/(dev\/null|proc|w)/.test(target))).toEqual([]);
  });
});

describe('commands of another user', () => {
  test('the user “agent” can neither read, trace, limit nor signal a command of root', async () => {
    const { command, pid } = await startVictim('root');
    const outcomes = await lab.inside(box, ['process', pid], { user: 'agent' });
    expect([...outcomes].filter(([, outcome]) => !['EPERM', 'EACCES'].includes(outcome))).toEqual([]);
    const signals = await lab.inside(box, ['process', 'signals', pid], { user: 'agent' });
    expect(new Set(signals.values())).toEqual(new Set(['ok 0']));
    await command.kill();
  });
});
