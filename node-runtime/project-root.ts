/** Where the installed project lies: the folder that holds package.json, found from the running file. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

let found: string | undefined;

export const projectRoot = (): string => {
  if (found) return found;
  let dir = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(dir, 'package.json'))) {
    const parent = dirname(dir);
    if (parent === dir) throw new Error('no package.json above the running program');
    dir = parent;
  }
  found = dir;
  return dir;
};
