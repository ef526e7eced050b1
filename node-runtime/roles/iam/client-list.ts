/** Who may connect to the bus of a single machine: every nkey credential, with the projects it reaches. Told when it changes. */
import type { ClientUser } from '#infra/nats/config.ts';
import { actionsIn, reachOf } from '#actors/project/authority.ts';
import type { Directory } from '#actors/project/directory.ts';
import { principalId } from '#bus/project/policy.ts';

/** Many changes together are one reload of the bus. */
const GATHER_MS = 50;

export class ClientList {
  readonly #tell: (clients: readonly ClientUser[]) => void;
  #timer: NodeJS.Timeout | undefined;
  #told = '';

  constructor(tell: (clients: readonly ClientUser[]) => void) {
    this.#tell = tell;
  }

  changed(directory: Directory): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const clients = clientsOf(directory);
      const text = JSON.stringify(clients);
      if (text === this.#told) return;
      this.#told = text;
      this.#tell(clients);
    }, GATHER_MS).unref();
  }
}

export const clientsOf = (directory: Directory): ClientUser[] =>
  directory.all().flatMap(({ name: project, principals }) =>
    principals.flatMap(({ name, credentials }) => {
      const principal = principalId(project, name);
      const reach = reachOf(directory, principal).map((to) => ({ project: to, operations: actionsIn(directory, principal, to).includes('sandbox.exec') }));
      return credentials.flatMap(({ id, proof }): ClientUser[] => (proof.type === 'nkey' ? [{ project, name: id, publicKey: proof.publicKey, reach }] : []));
    }),
  );
