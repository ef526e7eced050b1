/** The query behind `list`: pages by id, driven by the label index when there is a label, else by project or status. */
import type Database from 'better-sqlite3';
import type { ListQuery } from './sandbox.projection.ts';

export const listSandboxes = (db: Database.Database, { project, labels, statuses, changedAfter = {}, after, limit: _ }: ListQuery, rows: number): unknown[] => {
  const [driver, ...others] = Object.entries(labels);
  const parameters: (string | number)[] = [];
  const take = (...values: (string | number)[]): string => {
    parameters.push(...values);
    return values.map(() => '?').join(', ');
  };
  // The label index holds ids in order: a page reads as many entries as it needs, not all of the label's.
  const from = driver ? 'labels AS l JOIN sandboxes AS s ON s.project = l.project AND s.id = l.id' : 'sandboxes AS s';
  const id = driver ? 'l.id' : 's.id';
  const conditions = driver ? [`l.project = ${take(project)}`, `l.key = ${take(driver[0])}`, `l.value = ${take(driver[1])}`] : [`s.project = ${take(project)}`];
  for (const [key, value] of others)
    conditions.push(`EXISTS (SELECT 1 FROM labels AS o WHERE o.project = s.project AND o.id = s.id AND o.key = ${take(key)} AND o.value = ${take(value)})`);
  if (statuses.length > 0) conditions.push(`s.status IN (${take(...statuses)})`);
  for (const [shard, sequence] of Object.entries(changedAfter)) conditions.push(`NOT (s.shard = ${take(shard)} AND s.sequence <= ${take(sequence)})`);
  if (after !== undefined) conditions.push(`${id} > ${take(after)}`);
  return db
    .prepare(`SELECT s.version, s.sequence, s.state FROM ${from} WHERE ${conditions.join(' AND ')} ORDER BY ${id} LIMIT ${take(rows)}`)
    .all(...parameters);
};
