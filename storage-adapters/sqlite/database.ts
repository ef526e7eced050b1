/**
 * The projection's file: how it is opened, and when it is thrown away. It holds nothing that the stream does not hold, so
 * whatever is doubtful about it (damaged, other layout, other version of the sandbox state) is answered by deleting it.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { z } from 'zod';
import { SandboxState } from '#bus/sandbox/state.ts';
import { PROJECTION_LIMITS } from './limits.ts';

const LAYOUT = `
  CREATE TABLE about (fingerprint TEXT NOT NULL);
  CREATE TABLE streams (
    shard TEXT PRIMARY KEY, created_at TEXT NOT NULL, sequence INTEGER NOT NULL, fed_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE sandboxes (
    project TEXT NOT NULL, id TEXT NOT NULL, shard TEXT NOT NULL, edge TEXT NOT NULL, status TEXT NOT NULL,
    created_at INTEGER NOT NULL, version INTEGER NOT NULL, sequence INTEGER NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY (project, id)
  );
  CREATE INDEX sandboxes_by_status ON sandboxes (project, status, id);
  CREATE TABLE labels (
    project TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, id TEXT NOT NULL,
    PRIMARY KEY (project, key, value, id)
  ) WITHOUT ROWID;
  CREATE INDEX labels_by_sandbox ON labels (project, id);
`;

/** Changes with the tables and with the schema of the state that rows carry: no version number that could be forgotten. */
export const FINGERPRINT = createHash('sha256')
  .update(LAYOUT)
  .update(JSON.stringify(z.toJSONSchema(SandboxState, { io: 'input' })))
  .digest('hex');

/** Codes of a file that is no longer a sound database. A full disk or a locked file is not among them: those pass. */
const RUINED: ReadonlySet<string> = new Set(['SQLITE_CORRUPT', 'SQLITE_NOTADB', 'SQLITE_FORMAT']);
export const isRuined = (thrown: unknown): boolean => thrown instanceof Database.SqliteError && [...RUINED].some((code) => thrown.code.startsWith(code));

/** Opens the file, or a new one in its place. `rebuilt` says why the old one was thrown away. */
export const openDatabase = (path: string): { db: Database.Database; rebuilt: 'damaged' | 'other layout' | undefined } => {
  mkdirSync(dirname(path), { recursive: true });
  const existing = tryOpen(path);
  if (existing.db) return { db: existing.db, rebuilt: undefined };
  removeDatabase(path);
  const { db } = tryOpen(path);
  if (!db) throw new Error(`a new database at ${path} is not sound`);
  return { db, rebuilt: existing.flaw };
};

export const removeDatabase = (path: string): void => {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true });
};

const tryOpen = (path: string): { db: Database.Database; flaw?: undefined } | { db?: undefined; flaw: 'damaged' | 'other layout' } => {
  const db = new Database(path, { timeout: PROJECTION_LIMITS.busyMs });
  try {
    db.pragma('journal_mode = WAL');
    // Not a property of the file: must be set at every open. NORMAL may lose the newest transactions with the power, never order.
    db.pragma('synchronous = NORMAL');
    if (db.pragma('quick_check(1)', { simple: true }) !== 'ok') return { flaw: closed(db, 'damaged') };
    const isNew = db.prepare("SELECT count(*) FROM sqlite_master WHERE type = 'table'").pluck().get() === 0;
    if (isNew) create(db);
    return fingerprintOf(db) === FINGERPRINT ? { db } : { flaw: closed(db, 'other layout') };
  } catch (thrown) {
    db.close();
    if (isRuined(thrown)) return { flaw: 'damaged' };
    throw thrown;
  }
};

const closed = <T>(db: Database.Database, flaw: T): T => {
  db.close();
  return flaw;
};

const create = (db: Database.Database): void => {
  db.transaction(() => {
    db.exec(LAYOUT);
    db.prepare('INSERT INTO about (fingerprint) VALUES (?)').run(FINGERPRINT);
  })();
};

const fingerprintOf = (db: Database.Database): unknown => {
  const hasAbout = db.prepare("SELECT count(*) FROM sqlite_master WHERE name = 'about'").pluck().get() === 1;
  return hasAbout ? db.prepare('SELECT fingerprint FROM about').pluck().get() : undefined;
};
