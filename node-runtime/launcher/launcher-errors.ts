/** The launcher's refusals as errors of the platform: the only place that knows both. */
import { DsecError, type ErrorCode } from '#bus/errors.ts';

export type LauncherRefusal = {
  /** What was asked: `launch sb-…`, `mount image sha256:…`. */
  readonly request: string;
  readonly code: string;
  readonly step: string;
  readonly errno: string;
  readonly message: string;
};

/** An image whose own files stand in the way of a mount point, say `/proc` being a symbolic link. */
const IMAGE_ERRNOS = new Set(['ELOOP', 'ENOTDIR', 'EXDEV', 'EISDIR']);

const codeOf = ({ request, code, step, errno }: LauncherRefusal): ErrorCode => {
  const launching = request.startsWith('launch ');
  switch (code) {
    case 'EINVAL':
      return 'INVALID_ARGUMENT';
    case 'ENOENT':
      return step === 'find layer' || step === 'open image' ? 'LAYER_NOT_FOUND' : 'SANDBOX_NOT_FOUND';
    case 'EPOCH':
      return 'EDGE_FENCED';
    case 'FOREIGN':
      return 'HOST_UNFIT';
    case 'TOMBSTONE':
      return 'SANDBOX_ENDED';
    case 'BUSY':
      return 'OVERLOADED';
    case 'NO_SPACE':
      return 'NO_SPACE';
    case 'FULL':
      return 'NODE_FULL';
    case 'TIMEOUT':
      return launching ? 'LAUNCH_FAILED' : 'DEADLINE_EXCEEDED';
    case 'FAILED':
      if (launching) return IMAGE_ERRNOS.has(errno) ? 'START_FAILED' : 'LAUNCH_FAILED';
      return step === 'mount image' ? 'LAUNCH_FAILED' : 'INTERNAL';
    case 'DIED':
      return 'LAUNCH_FAILED';
    default:
      return 'INTERNAL';
  }
};

export const launcherError = (refusal: LauncherRefusal): DsecError =>
  DsecError.of(codeOf(refusal), `${refusal.request}: ${refusal.message}`, {
    details: { step: refusal.step, errno: refusal.errno, launcherCode: refusal.code },
  });
