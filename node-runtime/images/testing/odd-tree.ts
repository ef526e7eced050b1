/** Trees with one of everything that copies are known to lose. */
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { promisify } from 'node:util';
import { MANIFEST } from './mounted.ts';

const run = promisify(execFile);

export const makeOdd = async (directory: string): Promise<string> => {
  await mkdir(directory);
  await run('sh', ['-euc', ODD], { cwd: directory });
  return directory;
};
const ODD = String.raw`
  echo hi > a; ln a b; ln -s a lnk; ln -s missing dangling; mkdir emptydir stk; chmod 1777 stk
  cp /bin/true su; chown 1234:5678 su; chmod 4755 su; mkfifo ff; echo z > zero; chmod 0000 zero
  mkdir "sp ace"; echo x > "sp ace/new
line"; echo x > "$(printf 'b\377ad')"; : > .wh.a; mkdir -p deep/er/est
  touch -d '2001-02-03T04:05:06.789Z' a; touch -h -d '2002-02-02T02:02:02Z' lnk; touch -d '2003-03-03T03:03:03.000000001Z' deep/er
`;
/** The manifest of a tree outside any image, to compare with `MANIFEST` inside one. */
export const manifestOf = async (directory: string): Promise<string> => (await run('sh', ['-euc', `M='${directory}'; ${MANIFEST}`])).stdout;
