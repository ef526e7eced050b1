/** What holders of quota leases ask of IAM on `dsec.iam.<verb>`, and what it tells them. Roles only: no client reaches these subjects. */
import { z } from 'zod';
import { WireError } from '../errors.ts';
import { JobId, ProjectName, RequestId } from '../ids.ts';
import { Positions } from '../project/schema.ts';
import { QuotaAmounts, QuotaLeaseId } from '../project/quota.ts';
import { DurationMs } from '../units.ts';

const v = z.literal(1);

/** `<place>.<life>`: of a place there is one process at a time, and a higher life says that the lower ones are over. */
export const QuotaHolderName = z
  .string()
  .max(100)
  .regex(/^[a-z0-9-]+\.[1-9][0-9]{0,14}$/, 'a holder of quota looks like <place>.<life>')
  .brand<'QuotaHolderName'>();
export type QuotaHolderName = z.infer<typeof QuotaHolderName>;
export const quotaHolderName = (place: string, life: number): QuotaHolderName => QuotaHolderName.parse(`${place}.${life}`);
export const parseQuotaHolder = (name: string): { readonly place: string; readonly life: number } | null => {
  const [place = '', life] = QuotaHolderName.safeParse(name).data?.split('.') ?? [];
  return life === undefined ? null : { place, life: Number(life) };
};
/** Whether `life` is a later one of the place that `holder` names. */
export const outlives = (life: QuotaHolderName, holder: string): boolean => {
  const [later, earlier] = [parseQuotaHolder(life), parseQuotaHolder(holder)];
  return later !== null && earlier !== null && later.place === earlier.place && later.life > earlier.life;
};

const refusal = z.object({ outcome: z.literal('refused'), error: WireError });
const later = z.object({ outcome: z.literal('later'), retryAfterMs: DurationMs });

export const LENDING = {
  /** A lease for `count` items that need `each`, and for up to `prefetch` where others are left enough. `lease` is the asker's choice: a repetition finds it. */
  drawQuota: {
    request: z.strictObject({
      v,
      project: ProjectName,
      /** In whose share it counts, too. */
      job: JobId.optional(),
      holder: QuotaHolderName,
      lease: QuotaLeaseId,
      each: QuotaAmounts,
      count: z.number().int().positive(),
      prefetch: z.number().int().nonnegative(),
    }),
    response: z.discriminatedUnion('outcome', [
      /** `lifeMs` counts from when the holder asked. `error` says of items beyond `count` why there is nothing for them. */
      z.object({
        outcome: z.literal('lent'),
        count: z.number().int().positive(),
        granted: QuotaAmounts,
        lifeMs: DurationMs,
        scarce: z.boolean(),
        error: WireError.nullable(),
      }),
      refusal,
      later,
    ]),
  },
  /** Nothing will be spent of these any more, and nothing that was spent is undecided. */
  closeQuota: { request: z.strictObject({ v, project: ProjectName, leases: z.array(QuotaLeaseId).max(512) }), response: z.object({}) },
  /** The lives of this place before `holder` are over: what they had borrowed is settled, without waiting for the ends of their leases. */
  inheritQuota: { request: z.strictObject({ v, holder: QuotaHolderName }), response: z.object({ leases: z.number().int().nonnegative() }) },
  confirmQuota: {
    request: z.strictObject({ v, project: ProjectName, job: JobId.optional(), requestId: RequestId, lease: QuotaLeaseId, at: Positions }),
    response: z.discriminatedUnion('outcome', [z.object({ outcome: z.literal('counted') }), refusal, later]),
  },
} as const;
export type LendingVerb = keyof typeof LENDING;
export type LendingRequest<V extends LendingVerb> = z.output<(typeof LENDING)[V]['request']>;
export type LendingResponse<V extends LendingVerb> = z.output<(typeof LENDING)[V]['response']>;
export const isLendingVerb = (verb: string): verb is LendingVerb => Object.hasOwn(LENDING, verb);

export const LendingAnswer = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), data: z.unknown() }),
  z.object({ ok: z.literal(false), error: WireError }),
]);

export const QuotaRecall = z.strictObject({ v, leases: z.array(QuotaLeaseId).max(512) });
export type QuotaRecall = z.infer<typeof QuotaRecall>;
