/** Seeds that every change must pass. Those that once found something say what; the others are here to stay the same. */
export const FIXED_SEEDS: readonly { readonly seed: number; readonly found?: string }[] = [
  { seed: 1, found: 'an item that a node had refused was created there when its batch came again, while another node had it: doubled' },
  { seed: 4, found: 'the same, by a batch that was retried for the sake of another item' },
  { seed: 37, found: 'a checker that took a sandbox which was lost with its node for an orphan of its job' },
  { seed: 69, found: 'a process that began after the faults were over and still had a bad link: its reservation was given back too late' },
  { seed: 7225, found: 'a run that was taken to have ended while a node was still on its way back, with a sandbox that waited there for its layers' },
  { seed: 9223, found: 'a shell of the simulation that went on before the state it had just committed was known to it: a settlement with an old fence' },
  { seed: 10126, found: 'a key used twice with another body: the refusal sent what the first use had decided and had not yet found room for' },
  { seed: 20947, found: 'a run that was taken to have ended while a job waited to hear that its last member was gone' },
  { seed: 30382, found: 'a placement that still took a node for lost refused what had been sent there since, and the node admitted it: doubled' },
  { seed: 30463, found: 'an owner that was told there is no job while its creation was on its way, and never asked again' },
  { seed: 60772, found: 'a run that was over while a node still had to say that a sandbox had ended, whose process was gone (simulation)' },
  { seed: 61863, found: 'an IAM process that knew a record above newer than the payer’s, and settled a live lease there: one sandbox too many was lent' },
  ...[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30].map((seed) => ({ seed })),
];
