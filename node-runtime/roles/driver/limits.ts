import { RETRY_LIMITS } from '#actors/kernel/work.ts';

export const DRIVER_LIMITS = {
  ...RETRY_LIMITS,
  /** Longest wait of one Node timer (2³¹ − 1 ms); longer deadlines are re-armed. */
  timerMaxMs: 2_147_483_647,
} as const;
