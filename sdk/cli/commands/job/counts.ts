/** What became of a job's members, in words. */
import type { MemberCounts } from '#bus/job/schema.ts';

export const countsOf = ({ reached, failed, left }: MemberCounts): string => `${reached} there, ${failed} failed, ${left} left`;
