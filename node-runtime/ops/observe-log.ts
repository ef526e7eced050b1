/**
 * Counts from the canonical lines: each command, request, operation and effect says one line, whatever its level, and that line is the
 * source of its metrics. So a role that logs is measured, and knows nothing of it.
 */
import type { Log, LogFields } from '../log/log.ts';
import { type Instruments, LabelValues } from './instruments.ts';

type Level = 'debug' | 'info' | 'warn' | 'error';
type Meter = (fields: LogFields) => void;

export const observeLog = (log: Log, instruments: Instruments, role: string): Log => {
  const meters = metersOf(instruments, role);
  const { logLines } = instruments;
  const wrap = (inner: Log): Log => {
    const line =
      (level: Level): Log['info'] =>
      (event, fields = {}) => {
        inner[level](event, fields);
        if (level !== 'debug') logLines.inc({ role, level });
        meters[event]?.(fields);
      };
    return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error'), child: (fields) => wrap(inner.child(fields)) };
  };
  return wrap(log);
};

const metersOf = (i: Instruments, role: string): Readonly<Record<string, Meter>> => {
  const [verbs, codes, commands, effects] = [new LabelValues(), new LabelValues(), new LabelValues(), new LabelValues()];
  const request: Meter = ({ verb, code, durationMs }) => {
    const name = verbs.bounded(String(verb) || 'none');
    i.apiRequests.inc({ role, verb: name, code: codes.bounded(code ?? 'OK') });
    i.apiSeconds.observe({ role, verb: name }, secondsOf(durationMs));
  };
  const operation: Meter = ({ op, code, durationMs }) => {
    const name = verbs.bounded(String(op));
    i.ops.inc({ op: name, code: codes.bounded(code ?? 'OK') });
    i.opSeconds.observe({ op: name }, secondsOf(durationMs));
  };
  const effect: Meter = ({ type, code, durationMs }) => {
    const name = effects.bounded(String(type));
    i.effects.inc({ role, effect: name, code: codes.bounded(code ?? 'OK') });
    if (code === undefined) i.effectSeconds.observe({ role, effect: name }, secondsOf(durationMs));
  };
  return {
    'api.answered': request,
    'api.refused': request,
    'op.answered': operation,
    'op.refused': operation,
    'effect.done': effect,
    'effect.failed': effect,
    'command.decided': ({ kind, type, outcome, code, durationMs }) => {
      const labels = { role, kind: String(kind) };
      i.decisions.inc({ ...labels, command: commands.bounded(String(type)), outcome: outcome ?? '', code: codes.bounded(code ?? 'OK') });
      i.decisionSeconds.observe(labels, secondsOf(durationMs));
    },
    'create.refused': ({ code }) => i.edgeRefusals.inc({ code: codes.bounded(code ?? 'INTERNAL') }),
    'placement.refused': ({ code }) => i.placementRefusals.inc({ code: codes.bounded(code ?? 'INTERNAL') }),
  };
};

const secondsOf = (durationMs: number | undefined): number => (durationMs ?? 0) / 1_000;
