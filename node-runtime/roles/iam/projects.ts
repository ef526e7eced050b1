/** Project actors as this process hosts them, and the directory of what it knows. Any number of processes may: the log arbitrates. */
import { randomUUID } from 'node:crypto';
import { DsecError } from '#bus/errors.ts';
import type { ProjectName } from '#bus/ids.ts';
import type { ProjectCommand, ProjectEvent, ProjectState } from '#bus/project/schema.ts';
import { readState } from '#bus/records.ts';
import { projectAddress } from '#bus/subjects.ts';
import type { CommandResult } from '#actors/kernel/host.ts';
import type { Clock } from '#actors/ports/clock.ts';
import type { EventLog, StoredCommit } from '#actors/ports/event-log.ts';
import { Directory } from '#actors/project/directory.ts';
import { projectDefinition } from '#actors/project/project.definition.ts';
import type { Log } from '../../log/log.ts';
import { ActorDriver } from '../driver/driver.ts';

export type By = { readonly principal: string; readonly commandId?: string | undefined; readonly traceparent?: string | undefined };
/** IAM's own doing. */
export const PLATFORM: By = { principal: 'platform' };

export class Projects {
  readonly directory = new Directory();
  readonly #driver: ActorDriver<ProjectState, ProjectCommand, ProjectEvent, never>;
  readonly #clock: Clock;
  readonly #onChange: (state: ProjectState) => void;

  constructor(options: { readonly eventLog: EventLog; readonly clock: Clock; readonly log: Log; readonly onChange?: (state: ProjectState) => void }) {
    const { eventLog, clock, log } = options;
    this.#clock = clock;
    this.#onChange = options.onChange ?? (() => {});
    this.#driver = new ActorDriver<ProjectState, ProjectCommand, ProjectEvent, never>({
      definition: projectDefinition,
      eventLog,
      clock,
      log,
      armDeadlines: false,
      runEffect: () => Promise.resolve(null),
      deadlineCommand: () => {
        throw new Error('projects have no deadlines');
      },
      onAdopted: (state, stored) => this.#learn(state, stored),
    });
  }

  /** A commit that another process made. */
  heard(stored: StoredCommit): void {
    if (stored.commit.version <= this.directory.versionOf(stored.address.project)) return;
    this.#learn(readState('project', stored.commit.state, stored.commit.schema), stored);
    this.#driver.adopt(stored);
  }

  #learn(state: ProjectState, stored: StoredCommit): void {
    if (this.directory.learn(state, stored.commit.version)) this.#onChange(state);
  }

  try(project: ProjectName, command: ProjectCommand, by: By = PLATFORM): Promise<CommandResult> {
    // "It is so already" is said of what the log holds now, not of what this process remembers: another may have changed it.
    if (by !== PLATFORM) this.#driver.evict(projectAddress(project));
    const commandId = by.commandId ?? `${project}:${command.type}:${randomUUID()}`;
    const meta = { commandId, correlationId: commandId, principal: by.principal, traceparent: by.traceparent, at: this.#clock.now() };
    return this.#driver.submit(projectAddress(project), command, meta);
  }

  /** As `try`; a refusal is thrown. */
  async decide(project: ProjectName, command: ProjectCommand, by: By = PLATFORM): Promise<void> {
    const result = await this.try(project, command, by);
    if (!result.ok) throw new DsecError(result.error);
  }

  close(): void {
    this.#driver.close();
  }
}
