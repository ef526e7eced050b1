import { expect, test } from 'vitest';
import { SANDBOX_STATUSES } from '#bus/sandbox/state.ts';
import { sandboxStateChart } from './state-chart.ts';

test('the chart shows every state, and stop from every living one', () => {
  const chart = sandboxStateChart();
  for (const status of SANDBOX_STATUSES) expect(chart).toMatch(new RegExp(`^  ${status} -->`, 'm'));
  expect(chart).toMatch(/^stateDiagram-v2\n {2}\[\*\] --> admitted: SandboxAdmitted\n/);
  const note = chart.split('\n').find((line) => line.includes('note left of stopping')) ?? '';
  for (const status of SANDBOX_STATUSES.filter((s) => !['stopping', 'stopped', 'failed'].includes(s))) expect(note).toContain(status);
});
