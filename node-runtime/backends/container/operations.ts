/** Who answers which operation on a sandbox: files and ports go to their services, which end with the sandbox; all others to Chronus. */
import { DsecError } from '#bus/errors.ts';
import { isFileOp } from '#bus/op/files.ts';
import { isPortOp } from '#bus/op/ports.ts';
import type { ExecOpName, OpParsed } from '#bus/op/schema.ts';
import type { Chronus } from '../../chronus/chronus.ts';
import type { FileService } from '../../files/service.ts';
import type { PortService } from '../../ports/service.ts';
import type { OpHandler } from '../../roles/edge/ops.ts';

/** `live`: absent when the sandbox has ended. */
export const handlerOf = (chronus: Chronus, live: { readonly files: FileService; readonly ports: PortService } | undefined): OpHandler => ({
  isRecorded: (op, request) => !isFileOp(op) && !isPortOp(op) && chronus.isRecorded(op as ExecOpName, request as OpParsed<ExecOpName>),
  handle: (op, request, body) => {
    if (!isFileOp(op) && !isPortOp(op)) return chronus.handle(op as ExecOpName, request as OpParsed<ExecOpName>, body);
    if (!live) throw DsecError.of('SANDBOX_ENDED', 'the sandbox has ended, and its files and servers with it; create a new one');
    return isFileOp(op) ? live.files.handle(op, request as OpParsed<typeof op>, body) : live.ports.handle(op, request as OpParsed<typeof op>, body);
  },
});
