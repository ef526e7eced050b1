/**
 * Which projects may share a node (@paper §7: isolation bounds the blast radius). One rule, asked by placement about what beats
 * show and by the Edge about what it has admitted; the Edge has the last word.
 */
import type { ProjectName } from '#bus/ids.ts';
import type { Isolation } from '#bus/sandbox/spec.ts';

/** Who is on a node. */
export type Tenancy = {
  /** Live sandboxes by project. */
  readonly running: Readonly<Record<string, number>>;
  /** The project that must have the node to itself. */
  readonly reservedFor: ProjectName | null;
};

const hasOthers = ({ running }: Tenancy, project: ProjectName): boolean => Object.entries(running).some(([other, count]) => other !== project && count > 0);

/** Whether a sandbox of the project may come to the node at all. */
export const mayShare = (project: ProjectName, isolation: Isolation, node: Tenancy): boolean => {
  if (node.reservedFor !== null && node.reservedFor !== project) return false;
  return isolation !== 'requireApart' || !hasOthers(node, project);
};

/** Whether it comes there only where no other node will do. */
export const isUnwelcome = (project: ProjectName, isolation: Isolation, node: Tenancy): boolean => isolation === 'preferApart' && hasOthers(node, project);
