/** Folds one event into a project's state. INV-REPLAY: a function of its arguments alone. */
import type { Principal, ProjectEvent, ProjectState } from '#bus/project/schema.ts';
import { furthest } from './quota.ts';

export const evolveProject = (state: ProjectState | null, event: ProjectEvent): ProjectState => {
  if (event.type === 'ProjectCreated') {
    if (state) throw new Error(`project ${state.name}: created twice`);
    const { name, ancestors, limits, at } = event;
    return { name, ancestors, createdAt: at, limits, principals: [], grants: [], children: [], leases: [], fence: {} };
  }
  if (!state) throw new Error(`project: ${event.type} before ProjectCreated`);
  switch (event.type) {
    case 'QuotaDelegated':
      return { ...state, children: [...state.children.filter(({ name }) => name !== event.child), { name: event.child, limits: event.limits }] };
    case 'QuotaSet':
      return { ...state, limits: event.limits };
    case 'ActionsGranted':
      return { ...state, grants: [...withoutGrant(state, event.grant.principal), event.grant] };
    case 'ActionsRevoked':
      return { ...state, grants: withoutGrant(state, event.principal) };
    case 'PrincipalCreated':
      return { ...state, principals: [...state.principals, { name: event.name, kind: event.kind, createdAt: event.at, credentials: [] }] };
    case 'PrincipalRemoved':
      return { ...state, principals: state.principals.filter(({ name }) => name !== event.name) };
    case 'CredentialIssued':
      return withCredentials(state, event.principal, (credentials) => [...credentials, event.credential]);
    case 'CredentialRevoked':
      return withCredentials(state, event.principal, (credentials) => credentials.filter(({ id }) => id !== event.id));
    case 'LeaseOpened':
      return { ...state, leases: [...state.leases, { ...event.lease, status: 'open' }] };
    case 'LeaseClosing':
      return { ...state, leases: state.leases.map((lease) => (lease.id === event.id ? { ...lease, status: 'closing' } : lease)) };
    case 'LeaseSettled':
      return { ...state, leases: state.leases.filter(({ id }) => id !== event.id), fence: furthest(state.fence, event.fence) };
    case 'ChargeConfirmed':
      return { ...state, fence: furthest(state.fence, event.fence) };
  }
};

const withoutGrant = ({ grants }: ProjectState, principal: string) => grants.filter((grant) => grant.principal !== principal);

const withCredentials = (state: ProjectState, name: string, change: (credentials: Principal['credentials']) => Principal['credentials']): ProjectState => ({
  ...state,
  principals: state.principals.map((principal) => (principal.name === name ? { ...principal, credentials: change(principal.credentials) } : principal)),
});
