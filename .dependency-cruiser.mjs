/**
 * Who may import whom. The table is the architecture: a folder may import itself and what its row names, nothing else.
 *
 * | folder | may import |
 * |---|---|
 * | bus-schemas | zod, node:crypto |
 * | actors | bus-schemas, xstate (ports and kernel included: no I/O anywhere) |
 * | storage-adapters | bus-schemas, actors/ports, drivers |
 * | sdk | bus-schemas, the NATS client, its CLI's libraries |
 * | simulations | bus-schemas, actors, storage-adapters/memory (and how a commit becomes a message), libraries of its report |
 * | infra | bus-schemas, the NATS client (the demo and the cluster put everything together, like node-runtime/bin) |
 * | node-runtime | everything above |
 *
 * Tests may import what they test with: fast-check, vitest, test/.
 */
const TEST = '(\\.spec\\.ts|\\.contract\\.ts|/testing/.*)$';
const TEST_TOOLS = '^(test/|node_modules/(vitest|fast-check|esbuild)/)';

/** A rule that forbids `folder` everything but `allowed` (patterns of resolved paths). */
const only = (folder, comment, ...allowed) => ({
  name: `${folder}-imports`,
  comment,
  severity: 'error',
  from: { path: `^${folder}/`, pathNot: TEST },
  to: { pathNot: [`^${folder}/`, ...allowed], dependencyTypesNot: ['core'] },
});

const packages = (...names) => `^node_modules/(${names.join('|')})/`;

export default {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'Two files that need each other are one file, or need a third.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    { name: 'no-unresolved', comment: 'An import that leads nowhere.', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'no-undeclared-package',
      comment: 'A package that package.json does not name.',
      severity: 'error',
      from: {},
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'no-tests-in-production',
      comment: 'Production code imports no test code.',
      severity: 'error',
      from: { pathNot: ['^test/', TEST, '^vitest\\.config'] },
      to: { path: ['^test/', '\\.spec\\.ts$', packages('vitest', 'fast-check')] },
    },
    only('bus-schemas', 'The contract depends on zod alone: any program may read it.', packages('zod')),
    only('actors', 'Decisions are pure: no I/O, no clock, no randomness.', '^bus-schemas/', packages('xstate', 'zod')),
    only(
      'storage-adapters',
      'Adapters know the ports, not the decisions.',
      '^bus-schemas/',
      '^actors/ports/',
      packages('@nats-io', 'better-sqlite3', 'koffi', 'zod'),
    ),
    only(
      'sdk',
      'The SDK is published alone: the contract and the NATS client; node-pty is for its worker, which lies in a layer.',
      '^bus-schemas/',
      packages('@nats-io', '@opentelemetry/api', 'zod', 'commander', 'cli-table3', 'node-pty'),
    ),
    only(
      'simulations',
      'The simulation runs the decisions over memory.',
      '^bus-schemas/',
      '^actors/',
      '^storage-adapters/(memory/|commit-message)',
      packages('zod', 'commander', 'cli-table3', 'echarts'),
    ),
    {
      ...only(
        'infra',
        'Set-up and the embedded server know the contract only; the demo and the cluster put processes together.',
        '^bus-schemas/',
        packages('@nats-io', 'zod', 'esbuild'),
      ),
      from: { path: '^infra/', pathNot: [TEST, '^infra/(demo|cluster)/'] },
    },
    {
      name: 'no-io-in-actors',
      comment: 'Nothing of node: inside decisions but hashing; ports may name the type of a stream.',
      severity: 'error',
      from: { path: '^actors/', pathNot: TEST },
      to: { dependencyTypes: ['core'], pathNot: '^(node:)?(crypto|stream)$' },
    },
    {
      name: 'no-io-in-bus-schemas',
      comment: 'Hashing is the only thing the contract needs of node:.',
      severity: 'error',
      from: { path: '^bus-schemas/', pathNot: TEST },
      to: { dependencyTypes: ['core'], pathNot: '^(node:)?crypto$' },
    },
    {
      name: 'runtime-does-not-reach-clients',
      comment: 'Servers do not depend on the SDK; the one program joins its commands.',
      severity: 'error',
      from: { path: '^node-runtime/', pathNot: [TEST, '^node-runtime/bin/'] },
      to: { path: '^sdk/' },
    },
    {
      name: 'spec-helpers',
      comment: 'Unit tests use what they test and the test tools.',
      severity: 'error',
      from: { path: '^(bus-schemas|actors)/.*\\.spec\\.ts$' },
      to: { pathNot: ['^(bus-schemas|actors)/', TEST_TOOLS, packages('zod', 'xstate'), '^storage-adapters/memory/'], dependencyTypesNot: ['core'] },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^build/|^\\.cache/)' },
    enhancedResolveOptions: { extensions: ['.ts', '.mjs', '.js'], exportsFields: ['exports'], conditionNames: ['import', 'types', 'node', 'default'] },
  },
};
