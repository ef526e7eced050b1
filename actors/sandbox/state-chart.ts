/** The machine as a picture: a Mermaid state diagram made from the machine itself, so that it cannot lie. */
import { sandboxMachine } from './sandbox.machine.ts';

/** Events that leave every living state in the same way are drawn once. */
const DRAWN_APART = 'SandboxStopping';

export const sandboxStateChart = (): string => {
  const lines = ['stateDiagram-v2', `  [*] --> ${sandboxMachine.config.initial}: SandboxAdmitted`];
  const stoppable: string[] = [];
  for (const [name, node] of Object.entries(sandboxMachine.states)) {
    for (const [event, transitions] of node.transitions) {
      const targets = transitions.flatMap((t) => (t.target ?? []).map((target) => target.key));
      if (event === DRAWN_APART) stoppable.push(name);
      else for (const target of targets) lines.push(`  ${name} --> ${target}: ${event}`);
      if (targets.length === 0) lines.push(`  ${name} --> ${name}: ${event}`);
    }
  }
  lines.push(`  note left of stopping: ${DRAWN_APART} leads here from ${stoppable.join(', ')}`);
  lines.push('  stopped --> [*]', '  failed --> [*]');
  return `${lines.join('\n')}\n`;
};
