/** What tests of files share: a platform with one sandbox, and what a tree is compared by. */
import { expect } from 'vitest';
import { connect, type DsecClient, type RunOptions, type Sandbox } from '#sdk/mod.ts';
import { startTestPlatform, type TestPlatform } from './platform.ts';

export type FilesStand = { readonly host: TestPlatform; readonly dsec: DsecClient; readonly box: Sandbox; close(): Promise<void> };

export const startFilesStand = async (options: Partial<RunOptions> = {}): Promise<FilesStand> => {
  const host = await startTestPlatform();
  const dsec = await connect({ contextFile: host.platform.contextFile });
  const box = await dsec.runContainer({ image: 'small', ...options });
  return {
    host,
    dsec,
    box,
    close: async () => {
      await dsec.close();
      await host.close();
    },
  };
};

/** One line for each thing below a directory: everything that a copy may lose, by busybox, which sandbox and host both have. */
export const MANIFEST = `find . -mindepth 1 -exec busybox stat -c '%n|%F|%a|%u:%g|%h|%N|%y|%s' {} + | sort`;

/** Runs a script in a sandbox as its root; its output. */
export const inside = async (box: Sandbox, script: string): Promise<string> => {
  const result = await box.runShell(script);
  expect(result.stderr).toBe('');
  return result.stdout;
};
