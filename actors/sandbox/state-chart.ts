/** The machine as a picture: a Mermaid state diagram made from the machine itself, so that it cannot lie. */
import { sandboxMachine } from './sandbox.machine.ts';

/** Leaves every living state in the same way, and is drawn once. */
const DRAWN_APART = 'SandboxStopping';

/** Events that only write something down, and lead nowhere else, are left out. */
export const sandboxStateChart = (): string => {
  const lines = ['stateDiagram-v2', `  [*] --> ${sandboxMachine.config.initial}: SandboxAdmitted`];
  const stoppable: string[] = [];
  for (const [name, node] of Object.entries(sandboxMachine.states)) {
    for (const [event, transitions] of node.transitions) {
      const targets = transitions.flatMap((t) => (t.target ?? []).map((target) => target.key));
      if (event === DRAWN_APART) stoppable.push(name);
      else for (const target of targets) lines.push(`  ${name} --> ${target}: ${event}`);
    }
  }
  lines.push(`  note left of stopping: ${DRAWN_APART} leads here from ${stoppable.join(', ')}`);
  lines.push('  stopped --> [*]', '  failed --> [*]');
  return `${lines.join('\n')}\n`;
};
