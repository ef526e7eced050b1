import { eventLogContract } from '#test/contract/event-log.contract.ts';
import { memoryLogFactory } from '#test/helpers/memory-log.ts';

eventLogContract('memory', memoryLogFactory());
