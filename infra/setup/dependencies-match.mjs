/**
 * Exits 0 when node_modules holds what package-lock.json names, version by version, by its own account and in its folders. `npm ci`
 * would throw everything away and compile again, which takes a minute; after `npm install` of one package it is not needed.
 */
import { existsSync, readFileSync } from 'node:fs';

const packagesOf = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;

try {
  const wanted = packagesOf('package-lock.json');
  const installed = packagesOf('node_modules/.package-lock.json');
  const differing = Object.entries(wanted).filter(([path, { version, optional }]) => {
    if (path === '') return false;
    const found = installed[path];
    return found ? found.version !== version || (!optional && !existsSync(path)) : !optional;
  });
  process.exitCode = differing.length === 0 ? 0 : 1;
} catch {
  process.exitCode = 1; // no node_modules, or one that npm did not finish
}
