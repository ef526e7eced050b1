/** INV-MOUNT over any interleaving of users, sweeps, refusals and restarts, against a kernel that watches its callers. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LayerDigest, SandboxId } from '#bus/ids.ts';
import { type ImageMounter, ImageMounts } from './mounts.ts';

const digest = (n: number): LayerDigest => `sha256:${String(n).repeat(64)}` as LayerDigest;
const sandbox = (n: number): SandboxId => `sb-0-${String(n).repeat(20)}-node` as SandboxId;

/** What a launcher does for images, with every rule of the port asserted. `refuse` fails the next call of that kind. */
class WatchedKernel implements ImageMounter {
  readonly mounted = new Set<LayerDigest>();
  readonly users = new Map<LayerDigest, Set<SandboxId>>();
  readonly #busy = new Set<LayerDigest>();
  refuseMount = false;
  refuseUnmount = false;
  mountCalls = 0;

  mountImage(image: LayerDigest, path: string): Promise<void> {
    expect(path).toBe(`/store/${image}`);
    this.mountCalls += 1;
    return this.#exclusively(image, () => {
      if (this.refuseMount) throw new Error('mount refused');
      this.mounted.add(image);
    });
  }

  umountImage(image: LayerDigest): Promise<void> {
    return this.#exclusively(image, () => {
      expect([...(this.users.get(image) ?? [])], `users of ${image} at unmount`).toEqual([]);
      if (this.refuseUnmount) throw new Error('busy');
      this.mounted.delete(image);
    });
  }

  listImages(): Promise<LayerDigest[]> {
    return Promise.resolve([...this.mounted]);
  }

  async #exclusively(image: LayerDigest, work: () => void): Promise<void> {
    expect(this.#busy.has(image), `overlapping calls for ${image}`).toBe(false);
    this.#busy.add(image);
    await new Promise((resolve) => setImmediate(resolve));
    this.#busy.delete(image);
    work();
  }
}

const pathOf = (image: LayerDigest): string => `/store/${image}`;
const settle = async (): Promise<void> => {
  for (let i = 0; i < 20; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

type Step =
  | { kind: 'acquire' | 'release' | 'sweep' | 'remount' | 'launcherDied' | 'wait'; image: number; user: number }
  | { kind: 'refuse'; mount: boolean; unmount: boolean };
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constantFrom('acquire', 'release', 'sweep', 'remount', 'launcherDied', 'wait'), image: fc.nat(2), user: fc.nat(1) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('refuse'), mount: fc.boolean(), unmount: fc.boolean() }) },
) as fc.Arbitrary<Step>;

test('an image with a user stays mounted, calls about one image never overlap, and idle images are few', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const kernel = new WatchedKernel();
      const mounts = new ImageMounts({ pathOf, mounter: kernel, idleImages: 1 });
      const holding = new Map<SandboxId, Set<LayerDigest>>();
      const pending: Promise<unknown>[] = [];
      for (const s of steps) {
        if (s.kind === 'refuse') Object.assign(kernel, { refuseMount: s.mount, refuseUnmount: s.unmount });
        else if (s.kind === 'acquire') pending.push(acquire(mounts, kernel, holding, digest(s.image), sandbox(s.user)));
        else if (s.kind === 'release') pending.push(release(mounts, kernel, holding, sandbox(s.user)));
        else if (s.kind === 'sweep') pending.push(mounts.sweep());
        else if (s.kind === 'wait') await settle();
        else {
          if (s.kind === 'launcherDied') kernel.mounted.clear();
          pending.push(mounts.remount().catch(() => undefined));
        }
      }
      await Promise.all(pending);
      await settle();
      Object.assign(kernel, { refuseMount: false, refuseUnmount: false });
      await mounts.remount();
      await mounts.sweep();
      for (const layers of holding.values()) for (const image of layers) expect(kernel.mounted.has(image)).toBe(true);
      const used = new Set([...holding.values()].flatMap((layers) => [...layers]));
      expect([...kernel.mounted].filter((image) => !used.has(image)).length).toBeLessThanOrEqual(1);
      expect(new Set(mounts.usedLayers())).toEqual(used);
    }),
    { numRuns: 600 },
  );
});

const acquire = async (
  mounts: ImageMounts,
  kernel: WatchedKernel,
  holding: Map<SandboxId, Set<LayerDigest>>,
  image: LayerDigest,
  id: SandboxId,
): Promise<void> => {
  const before = holding.get(id);
  try {
    await mounts.acquire(image, id);
  } catch {
    return;
  }
  // A release in the meantime has taken the reference back; the caller never held it.
  if (!mounts.usersOf(image).includes(id) || (before !== undefined && holding.get(id) !== before)) return;
  holding.set(id, (holding.get(id) ?? new Set()).add(image));
  kernel.users.set(image, (kernel.users.get(image) ?? new Set()).add(id));
};

const release = async (mounts: ImageMounts, kernel: WatchedKernel, holding: Map<SandboxId, Set<LayerDigest>>, id: SandboxId): Promise<void> => {
  for (const image of holding.get(id) ?? []) kernel.users.get(image)?.delete(id);
  holding.delete(id);
  await mounts.release(id);
};

describe('images of a node', () => {
  test('many users mount an image once, and it outlives the last of them', async () => {
    const kernel = new WatchedKernel();
    const mounts = new ImageMounts({ pathOf, mounter: kernel });
    await Promise.all([1, 2, 3, 1].map((n) => mounts.acquire(digest(1), sandbox(n))));
    expect(kernel.mountCalls).toBe(1);
    for (const n of [1, 2, 3, 3]) await mounts.release(sandbox(n));
    expect([...kernel.mounted]).toEqual([digest(1)]);
    await mounts.acquire(digest(1), sandbox(1));
    expect(kernel.mountCalls).toBe(1);
  });

  test('the longest idle goes when there are too many, and all when their time is over', async () => {
    const kernel = new WatchedKernel();
    let nowMs = 0;
    const mounts = new ImageMounts({ pathOf, mounter: kernel, idleImages: 2, idleMs: 1_000, clock: { monotonicMs: () => nowMs } });
    for (const n of [1, 2, 3]) {
      await mounts.acquire(digest(n), sandbox(n));
      nowMs += 10;
      await mounts.release(sandbox(n));
    }
    expect([...kernel.mounted]).toEqual([digest(2), digest(3)]);
    nowMs += 1_000;
    await mounts.sweep();
    expect([...kernel.mounted]).toEqual([]);
  });

  test('after a restart live sandboxes hold their layers and what is mounted for nobody becomes idle', async () => {
    const kernel = new WatchedKernel();
    kernel.mounted.add(digest(1)).add(digest(2));
    const mounts = new ImageMounts({ pathOf, mounter: kernel, idleImages: 0 });
    await mounts.remount();
    mounts.restore(sandbox(1), [digest(1), digest(3)]);
    await mounts.sweep();
    expect([...kernel.mounted]).toEqual([digest(1)]);
    await mounts.remount();
    expect([...kernel.mounted].sort()).toEqual([digest(1), digest(3)]);
    await mounts.release(sandbox(1));
    expect([...kernel.mounted]).toEqual([]);
  });

  test('a failed mount is the caller’s error and leaves no user; the next call tries again', async () => {
    const kernel = new WatchedKernel();
    const mounts = new ImageMounts({ pathOf, mounter: kernel });
    kernel.refuseMount = true;
    await expect(mounts.acquire(digest(1), sandbox(1))).rejects.toThrowError('mount refused');
    expect(mounts.usedLayers().size).toBe(0);
    kernel.refuseMount = false;
    await mounts.acquire(digest(1), sandbox(1));
    expect(mounts.usedLayers()).toEqual(new Set([digest(1)]));
  });

  test('a mount that fails again does not take the reference of a sandbox that runs already', async () => {
    const kernel = new WatchedKernel();
    const mounts = new ImageMounts({ pathOf, mounter: kernel });
    mounts.restore(sandbox(1), [digest(1)]);
    kernel.refuseMount = true;
    await expect(mounts.remount()).rejects.toThrowError('mount refused');
    await expect(mounts.acquire(digest(1), sandbox(1))).rejects.toThrowError('mount refused');
    expect(mounts.usersOf(digest(1))).toEqual([sandbox(1)]);
    kernel.refuseMount = false;
    await mounts.remount();
    expect([...kernel.mounted]).toEqual([digest(1)]);
  });

  test('an image the kernel still uses stays, is reported, and goes later', async () => {
    const kernel = new WatchedKernel();
    const reported: LayerDigest[] = [];
    const mounts = new ImageMounts({ pathOf, mounter: kernel, idleImages: 0, onUnmountFailed: (image) => reported.push(image) });
    await mounts.acquire(digest(1), sandbox(1));
    kernel.refuseUnmount = true;
    await mounts.release(sandbox(1));
    expect([[...kernel.mounted], reported]).toEqual([[digest(1)], [digest(1)]]);
    kernel.refuseUnmount = false;
    await mounts.sweep();
    expect([...kernel.mounted]).toEqual([]);
  });
});
