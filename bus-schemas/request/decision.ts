/** What becomes of an all-or-nothing group: its parent decides it once, chunks and nodes obey. */
import { z } from 'zod';

export const GroupDecision = z.enum(['start', 'abandon']);
export type GroupDecision = z.infer<typeof GroupDecision>;
