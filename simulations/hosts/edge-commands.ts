/** Takes an Edge's commands from the queue, as `roles/edge/commands.ts` does; what is answered is decided in `actors/edge/launch.ts`. */
import type { CommandEnvelope } from '#bus/envelope.ts';
import { toWireError, type WireError, wireError } from '#bus/errors.ts';
import { SandboxId } from '#bus/ids.ts';
import { readAs } from './read-as.ts';
import { SandboxBusCommand } from '#bus/sandbox/commands.ts';
import { edgeCommandFilter, sandboxAddress } from '#bus/subjects.ts';
import type { Admission } from '#actors/edge/admission.ts';
import { isGoal, overtookItsCreate, unsettledBy } from '#actors/edge/launch.ts';
import { COMMAND_LIMITS } from '#actors/edge/limits.ts';
import type { CommandMeta, CommandResult } from '#actors/kernel/host.ts';
import { unpack } from '../ports/command-store.ts';
import type { SimDelivery } from '../ports/queue-consumer.ts';
import type { EdgeOptions, SandboxRunner } from './edge.ts';
import type { SimLease } from './lease.ts';
import { HOST_LIMITS } from './limits.ts';
import { PackedCreates, type Settlements } from './packed-creates.ts';

export type EdgeCommandsOptions = EdgeOptions & {
  readonly admission: Admission;
  readonly runner: SandboxRunner;
  readonly lease: SimLease;
  readonly settlements: Settlements;
  readonly accepting: () => boolean;
  readonly onAdmitted: (sequence: number) => void;
};
type Options = EdgeCommandsOptions;

export const consumeEdgeCommands = (o: Options, done: (error: WireError | null) => void): void => {
  const options = { name: `edge-${o.edge}`, filter: edgeCommandFilter(o.edge), fresh: true, maxInFlight: HOST_LIMITS.commandsInFlight };
  o.process.queue.consume(
    options,
    (delivery) => handle(o, delivery),
    (answer) => done(answer.ok ? null : answer.error),
  );
};

const handle = (o: Options, delivery: SimDelivery): void => {
  try {
    const envelope = unpack(delivery.data);
    const packed = () => new PackedCreates(o, delivery, envelope, (commandId) => metaOf(o, delivery, envelope, commandId));
    if (envelope.data.type === 'LaunchSandboxes') packed().launch();
    else if (envelope.data.type === 'ReleaseSandboxes') packed().release();
    else lifecycle(o, delivery, envelope);
  } catch (thrown) {
    delivery.discard(toWireError(thrown).code);
  }
};

const lifecycle = (o: Options, delivery: SimDelivery, envelope: CommandEnvelope): void => {
  const id = SandboxId.parse(delivery.subject.split('.').at(-1));
  const command = readAs(SandboxBusCommand, envelope.data);
  if (envelope.deadlineAt !== undefined && envelope.deadlineAt < o.process.clock.now()) {
    reply(o, envelope, {
      ok: false,
      error: wireError('DEADLINE_EXCEEDED', `${command.type} reached node ${o.edge} after its deadline`, { outcome: 'not_applied' }),
    });
    delivery.ack();
    return;
  }
  o.runner.submit(sandboxAddress(envelope.project, id), command, metaOf(o, delivery, envelope, envelope.id, isGoal(command.type)), (result) => {
    if (overtookItsCreate(command.type, result, delivery.attempt) || unsettledBy(result)) return delivery.retry(COMMAND_LIMITS.earlyStopRetryMs);
    reply(o, envelope, result);
    delivery.ack();
  });
};

const metaOf = (o: Options, delivery: SimDelivery, envelope: CommandEnvelope, commandId: string, unordered = false): CommandMeta => ({
  commandId,
  correlationId: envelope.correlationId,
  causationId: envelope.causationId ?? envelope.id,
  principal: envelope.principal,
  traceparent: envelope.traceparent,
  at: o.process.clock.now(),
  sequence: unordered ? undefined : delivery.sequence,
});

export type LifecycleReply = { readonly commandId: string; readonly result: CommandResult };

const reply = (o: Options, envelope: CommandEnvelope, result: CommandResult): void => {
  if (envelope.replyTo) o.process.bus.publish(o.process.link, envelope.replyTo, { commandId: envelope.id, result } satisfies LifecycleReply);
};
