/** Reads of /proc, /sys and directories that others are just emptying: what has vanished reads as nothing. */
import { readdirSync, readFileSync } from 'node:fs';

export const attempt = (work, otherwise) => {
  try {
    return work();
  } catch {
    return otherwise;
  }
};
export const namesIn = (directory) => attempt(() => readdirSync(directory), []);
export const directoriesIn = (directory) =>
  attempt(() => readdirSync(directory, { withFileTypes: true }), [])
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
export const textOf = (file) => attempt(() => readFileSync(file, 'utf8'), '');
