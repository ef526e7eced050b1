/**
 * Every project of a platform as one process has heard of it: who is above and below whom, whose credential is whose.
 * A read model; never older than its feed says (`node-runtime/roles/project-feed.ts`).
 */
import type { ProjectName } from '#bus/ids.ts';
import { type PrincipalId, principalId } from '#bus/project/policy.ts';
import type { Credential, Principal, ProjectState } from '#bus/project/schema.ts';

export type Holder = { readonly principal: PrincipalId; readonly kind: Principal['kind']; readonly project: ProjectName; readonly credential: Credential };

export class Directory {
  readonly #projects = new Map<ProjectName, { readonly state: ProjectState; readonly version: number }>();
  /** Public key or hash → who proves it. */
  readonly #holders = new Map<string, Holder>();

  /** False when a newer state is known. */
  learn(state: ProjectState, version: number): boolean {
    const before = this.#projects.get(state.name);
    if (before && before.version >= version) return false;
    if (before?.state.principals !== state.principals) {
      for (const { credentials } of before?.state.principals ?? []) for (const { proof } of credentials) this.#holders.delete(keyOf(proof));
      for (const { name, kind, credentials } of state.principals)
        for (const credential of credentials)
          this.#holders.set(keyOf(credential.proof), { principal: principalId(state.name, name), kind, project: state.name, credential });
    }
    this.#projects.set(state.name, { state, version });
    return true;
  }

  get(project: ProjectName): ProjectState | undefined {
    return this.#projects.get(project)?.state;
  }
  versionOf(project: ProjectName): number {
    return this.#projects.get(project)?.version ?? 0;
  }
  all(): ProjectState[] {
    return [...this.#projects.values()].map(({ state }) => state);
  }

  /** The project and all above it, nearest first; undefined when one of them is not known. */
  chainOf(project: ProjectName): ProjectState[] | undefined {
    const own = this.get(project);
    if (!own) return undefined;
    const chain = [own, ...own.ancestors.flatMap((name) => this.get(name) ?? [])];
    return chain.length === own.ancestors.length + 1 ? chain : undefined;
  }
  /** The project and all below it. */
  subtreeOf(project: ProjectName): ProjectName[] {
    return this.all().flatMap(({ name, ancestors }) => (name === project || ancestors.includes(project) ? [name] : []));
  }

  /** Whose credential this is, if it has not been revoked; whether it has expired is the asker's clock to say. */
  holderOf(proof: string): Holder | undefined {
    return this.#holders.get(proof);
  }
}

const keyOf = (proof: Credential['proof']): string => (proof.type === 'nkey' ? proof.publicKey : proof.sha256);
