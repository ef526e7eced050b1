/** `dsec doctor`: what this machine has of what the platform uses. */
import type { Command } from 'commander';
import { loadConfig } from '../config.ts';
import { plainTable } from '../terminal/plain-table.ts';
import { runDoctor, unfit } from './doctor.ts';
import type { Finding, Status } from './finding.ts';

const markOf = ({ status, required }: Finding): string => (status === 'absent' && required ? 'MISSING' : status);

export const registerDoctorCommand = (program: Command): void => {
  program
    .command('doctor')
    .description('list every kernel feature, program and limit that the platform uses; exit 1 when one that it cannot do without is absent')
    .option('--json', 'print the findings as JSON')
    .option('--data-dir <dir>', 'try layers and quotas on the disk of this directory')
    .addHelpText('after', '\nExamples:\n  dsec doctor\n  dsec doctor --json | jq \'.[] | select(.status != "present")\'\n')
    .action(async (flags: { json?: boolean; dataDir?: string }) => {
      const { dataDir } = loadConfig({ env: process.env, flags: flags.dataDir === undefined ? {} : { dataDir: flags.dataDir } });
      const findings = await runDoctor({ dataDir });
      const text = flags.json ? `${JSON.stringify(findings, null, 2)}\n` : report(findings);
      // Ends by itself even while a guest that never returned still holds a thread (kvm.ts).
      process.stdout.write(text, () => process.exit(unfit(findings).length > 0 ? 1 : 0));
    });
};

export const report = (findings: readonly Finding[]): string => {
  const { table, text } = plainTable({ head: ['', 'what', 'seen', 'used for', 'without it'], widths: [8, 30, 36, 38, 46] });
  let group = '';
  for (const finding of findings) {
    if (finding.group !== group) table.push([], [{ colSpan: 5, content: finding.group.toUpperCase() }]);
    group = finding.group;
    const without = finding.fallback ? `${finding.cost}; instead: ${finding.fallback}` : finding.cost;
    table.push([
      markOf(finding),
      `${finding.name}${finding.required ? ' *' : ''}`,
      finding.detail,
      finding.usedFor,
      finding.status === 'present' ? '' : without,
    ]);
  }
  return `${text()}\n${summary(findings)}\n`;
};

const summary = (findings: readonly Finding[]): string => {
  const count = (status: Status): number => findings.filter((finding) => finding.status === status).length;
  const counts = `${count('present')} present, ${count('limited')} limited, ${count('absent')} absent. * = required.`;
  const lacking = unfit(findings).map(({ name, detail }) => `  ${name}${detail ? ` (${detail})` : ''}`);
  return lacking.length === 0
    ? `${counts} This machine can run the platform.`
    : `${counts} This machine cannot run the platform, it lacks:\n${lacking.join('\n')}`;
};
