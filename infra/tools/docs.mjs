/**
 * Static check of the documents: every relative link leads to a file, every decision has a number of its own and is listed.
 *
 *   node infra/tools/docs.mjs
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from './bundle.mjs';

const DECISIONS = 'infra/adr';
const read = (file) => readFileSync(join(ROOT, file), 'utf8');

const documents = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file && existsSync(join(ROOT, file)));

const brokenLinks = documents.flatMap((file) =>
  [...read(file).matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g)]
    .filter(([, target]) => !existsSync(join(ROOT, dirname(file), target)))
    .map(([, target]) => `${file}: nothing is at ${target}`),
);

const decisions = readdirSync(join(ROOT, DECISIONS)).filter((name) => /^\d{4}-.*\.md$/.test(name));
const wrongDecisions = decisions.flatMap((name) => {
  const number = name.slice(0, 4);
  return [
    ...(decisions.filter((other) => other.startsWith(number)).length > 1 ? [`${DECISIONS}/${name}: the number ${number} is used twice`] : []),
    ...(read(`${DECISIONS}/${name}`).startsWith(`# ${Number(number)}. `)
      ? []
      : [`${DECISIONS}/${name}: its title does not begin with “# ${Number(number)}. ”`]),
    ...(read(`${DECISIONS}/README.md`).includes(`](${name})`) ? [] : [`${DECISIONS}/${name}: ${DECISIONS}/README.md does not list it`]),
  ];
});

const problems = [...brokenLinks, ...wrongDecisions];
for (const problem of problems) process.stdout.write(`${problem}\n`);
process.exitCode = problems.length === 0 ? 0 : 1;
