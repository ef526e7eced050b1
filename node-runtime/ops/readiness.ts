/**
 * Whether a process can do its work now, and if not, why. Liveness is another question: a process that answers lives, whatever its bus
 * does, and killing it would mend nothing.
 */
import { OPS_LIMITS } from './limits.ts';

/** `degraded`: it did its work and cannot at the moment; it goes on by itself when the reason has gone. */
export type ReadyStatus = 'starting' | 'ready' | 'degraded' | 'ending';
export type Reason = { readonly role: string; readonly check: string; readonly message: string };
export type Readiness = { readonly status: ReadyStatus; readonly roles: readonly string[]; readonly reasons: readonly Reason[] };

/** Answers with what is wrong, or null. */
export type Check = () => string | null | Promise<string | null>;

export class Checks {
  readonly #roles: readonly string[];
  readonly #checks = new Set<{ readonly role: string; readonly name: string; readonly look: Check }>();
  #phase: 'starting' | 'serving' | 'ending' = 'starting';

  constructor(roles: readonly string[]) {
    this.#roles = roles;
  }

  add(role: string, name: string, look: Check): () => void {
    const check = { role, name, look };
    this.#checks.add(check);
    return () => void this.#checks.delete(check);
  }

  enter(phase: 'serving' | 'ending'): void {
    this.#phase = phase;
  }

  async look(): Promise<Readiness> {
    const found = await Promise.all([...this.#checks].map((check) => reasonOf(check)));
    const reasons = [...new Map(found.filter((reason) => reason !== null).map((reason) => [JSON.stringify(reason), reason])).values()];
    return { status: this.#statusWith(reasons), roles: this.#roles, reasons };
  }

  #statusWith(reasons: readonly Reason[]): ReadyStatus {
    if (this.#phase !== 'serving') return this.#phase;
    return reasons.length === 0 ? 'ready' : 'degraded';
  }
}

const reasonOf = async ({ role, name, look }: { role: string; name: string; look: Check }): Promise<Reason | null> => {
  const message = await withinTime(async () => look(), `no answer within ${OPS_LIMITS.askMs} ms`);
  return message === null ? null : { role, check: name, message };
};

const withinTime = async (ask: () => Promise<string | null>, late: string): Promise<string | null> => {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(late), OPS_LIMITS.askMs);
  });
  try {
    return await Promise.race([ask().catch((thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown))), tooLate]);
  } finally {
    clearTimeout(timer);
  }
};
