/** Where the files of a sandbox lie on its node: the one place that knows their names. */
import { join } from 'node:path';
import type { SandboxId } from '#bus/ids.ts';

export type SandboxDirs = { readonly sandboxesDir: string; readonly socketsDir: string };

export type SandboxPaths = {
  readonly dir: string;
  /** Logs and records of its commands. */
  readonly exec: string;
  readonly upper: string;
  readonly work: string;
  /** In place of the two before, where it has a disk limit. */
  readonly disk: string;
  /** Aether's. */
  readonly socket: string;
};

export const sandboxPaths = ({ sandboxesDir, socketsDir }: SandboxDirs, id: SandboxId): SandboxPaths => {
  const dir = join(sandboxesDir, id);
  return {
    dir,
    exec: join(dir, 'exec'),
    upper: join(dir, 'upper'),
    work: join(dir, 'work'),
    disk: join(dir, 'disk.ext4'),
    socket: join(socketsDir, `${uniquePart(id)}.sock`),
  };
};

/** The hexadecimal part of a sandbox id, which alone names it on its node. */
export const uniquePart = (id: SandboxId): string => id.split('-')[2] ?? id;
