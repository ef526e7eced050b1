/**
 * Which commands this sandbox has: in memory those that are not over and the newest that are, in the journal and its files
 * all others. Answers "is this key known" for commands of every age.
 *
 * INV-EXEC-ONCE: a command enters the table by a line in the journal, and never twice while its files are kept.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { DsecError } from '#bus/errors.ts';
import type { ExecId } from '#bus/ids.ts';
import type { ExecView } from '#bus/op/schema.ts';
import { Command } from './command.ts';
import type { ExecFiles } from './files.ts';
import { Journal } from './journal.ts';
import type { Accepted, Death, Fact, JournalEntry } from './journal.ts';
import { CHRONUS_LIMITS } from './limits.ts';

export class CommandTable {
  readonly #journal: Journal;
  readonly #files: ExecFiles;
  /** Not over: accepted, running, or ended with pipes still held. Bounded by what Aether serves at once. */
  readonly #live = new Map<ExecId, Command>();
  /** Over; the oldest goes first. */
  readonly #recent = new Map<ExecId, Command>();
  #loaded = false;
  #entries = 0;

  constructor(execDir: string, files: ExecFiles) {
    this.#journal = new Journal(execDir);
    this.#files = files;
  }

  get live(): Iterable<Command> {
    return this.#live.values();
  }

  get runningCount(): number {
    let count = 0;
    for (const command of this.#live.values()) if (command.running) count += 1;
    return count;
  }

  get isAttended(): boolean {
    for (const command of this.#live.values()) if (command.running && command.attended) return true;
    return false;
  }

  /** Reads the journal, once, and takes up what an earlier Edge left unfinished. */
  load(): void {
    if (this.#loaded) return;
    this.#loaded = true;
    const entries = this.#journal.readAll();
    this.#entries = entries.size;
    if (entries.size === 0) return;
    const names = this.#files.names();
    for (const [execId, { accepted, refused, death }] of entries) {
      if (refused || death !== undefined || names.has(`${execId}.exit`)) continue;
      this.#live.set(execId, new Command(accepted, { started: names.has(`${execId}.out`), fresh: false }));
    }
  }

  /** Undefined: no such key was accepted, or it could not be started. */
  get(execId: ExecId): Command | undefined {
    this.load();
    const held = this.#live.get(execId) ?? this.#recent.get(execId);
    if (held || !this.#files.wasStarted(execId)) return held;
    const entry = this.#journal.find(execId);
    if (!entry || entry.refused) return undefined;
    const command = Command.ended(entry, this.#files);
    this.#live.set(execId, command);
    this.settle(command);
    return command;
  }

  /** In memory only: for events, which concern nothing that is over. */
  peek(execId: ExecId): Command | undefined {
    return this.#live.get(execId);
  }

  accept(accepted: Accepted): Command {
    this.#write(accepted);
    const command = new Command(accepted, { started: false, fresh: true });
    this.#live.set(accepted.execId, command);
    this.#entries += 1;
    if (this.#entries > CHRONUS_LIMITS.journalEntries) void this.#forgetOldest();
    return command;
  }

  /** It is over already: it ran in the lost sandbox whose place this one takes. */
  acceptReplayed(accepted: Accepted): void {
    const command = this.accept(accepted);
    this.settle(command);
  }

  /** It was not started and nothing of it ran: its key is free again. */
  refuse(command: Command): void {
    this.#live.delete(command.execId);
    this.#write({ v: 1, fact: 'refused', execId: command.execId });
  }

  /** Its sandbox is gone. What a record says counts; without one, unknown stays unknown. */
  bury(command: Command, death: Death): void {
    const exit = command.ended ? undefined : this.#files.exitOf(command.execId);
    if (exit) command.end(exit);
    if (!command.ended) {
      this.#write({ v: 1, fact: 'sandbox_died', execId: command.execId, ...death });
      command.endWithoutRecord(death.reason, death.at, this.#files);
    }
    command.sever();
    this.settle(command);
  }

  /** Moves a command that is over out of the way. */
  settle(command: Command): void {
    if (!command.complete || !this.#live.delete(command.execId)) return;
    this.#recent.set(command.execId, command);
    if (this.#recent.size <= CHRONUS_LIMITS.recentCommands) return;
    for (const oldest of this.#recent.keys()) {
      this.#recent.delete(oldest);
      break;
    }
  }

  /** Newest first. */
  list(): ExecView[] {
    this.load();
    const views: ExecView[] = [];
    for (const [execId, entry] of [...this.#journal.readAll()].reverse()) {
      if (views.length >= CHRONUS_LIMITS.listedCommands) break;
      const command = this.#live.get(execId) ?? this.#recent.get(execId);
      if (command ? command.started : !entry.refused) views.push((command ?? Command.ended(entry, this.#files)).view);
    }
    return views;
  }

  #write(fact: Fact): void {
    try {
      this.#journal.append(fact);
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      if (code === 'ENOSPC' || code === 'EDQUOT')
        throw DsecError.of('NO_SPACE', "the node has no space for the sandbox's journal; free some and try again", { cause });
      if (code === 'ENOENT') throw DsecError.of('SANDBOX_ENDED', 'the files of the sandbox are gone; create a new one', { cause });
      throw cause;
    }
  }

  async #forgetOldest(): Promise<void> {
    const entries = [...this.#journal.readAll().values()];
    const surplus = entries.length - CHRONUS_LIMITS.journalEntriesKept;
    const isForgotten = ({ accepted }: JournalEntry, index: number): boolean => index < surplus && !this.#live.has(accepted.execId);
    this.#journal.rewrite(entries.filter((entry, index) => !isForgotten(entry, index)));
    this.#entries = entries.length - surplus;
    for (const { accepted } of entries.filter(isForgotten)) {
      this.#recent.delete(accepted.execId);
      this.#files.forget(accepted.execId);
      await yieldToOthers();
    }
  }
}
