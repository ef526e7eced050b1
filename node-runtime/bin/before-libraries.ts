/**
 * Imported first. A library reads a stack while it is loaded; with source maps on, that alone makes every process parse the map of the
 * whole bundle: 50 MB and a fifth of a second. `dsec.ts` turns stacks on again as soon as everything is loaded.
 */
Error.stackTraceLimit = 0;
