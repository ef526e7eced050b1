/** A process that takes its name as a holder of quota in the directory of its argument, prints it, and stays. */
import { takeHolderName } from '#runtime/roles/placement/holder-name.ts';

process.stdout.write(`${takeHolderName(process.argv[2] ?? '').name}\n`);
setInterval(() => {}, 60_000);
