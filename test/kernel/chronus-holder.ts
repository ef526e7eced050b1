/**
 * A process that holds a Chronus, to be killed in the middle of its work. Arguments: exec directory, socket, then one JSON
 * exec request per line on standard input. Prints `accepted <execId>` when a command runs.
 */
import { createInterface } from 'node:readline';
import { execIdFor } from '#bus/ids.ts';
import type { ClientKey } from '#bus/ids.ts';
import { ChronusUnderTest, SANDBOX_ID } from './chronus-under-test.ts';

const [execDir = '', socketPath = ''] = process.argv.slice(2);
const box = new ChronusUnderTest({ execDir, socketPath });
await box.chronus.attach();
process.stdout.write('ready\n');

for await (const line of createInterface(process.stdin)) {
  const request = JSON.parse(line) as { key: ClientKey; shell: string };
  void box.call('exec', { ...request, waitMs: 0 }).then(() => process.stdout.write(`accepted ${execIdFor(SANDBOX_ID, request.key)}\n`));
}
