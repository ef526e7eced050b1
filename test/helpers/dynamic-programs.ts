/** Programs of this host, with the libraries they load, copied into a root file system for a test layer. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const copyProgram = (root: string, program: string, as = program): void => {
  const loaded = execFileSync('ldd', [program], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g);
  for (const [file, to] of [[program, as] as const, ...[...loaded].map(([, library = '']) => [library, library] as const)]) {
    mkdirSync(dirname(join(root, to)), { recursive: true });
    cpSync(file, join(root, to), { dereference: true });
  }
};
