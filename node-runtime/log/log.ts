/** One structured line per command and effect, to stderr as JSON. Injected everywhere; nothing else writes to the console in a role. */
import pino from 'pino';

/** Fields of the canonical line; a caller adds what else it knows. */
export type LogFields = {
  readonly outcome?: string | undefined;
  readonly code?: string | undefined;
  readonly durationMs?: number | undefined;
  readonly actorId?: string | undefined;
  readonly version?: number | undefined;
  readonly commandId?: string | undefined;
  readonly traceId?: string | undefined;
  readonly [field: string]: unknown;
};

export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  child(fields: LogFields): Log;
}

const wrap = (logger: pino.Logger): Log => ({
  debug: (event, fields = {}) => logger.debug({ event, ...fields }),
  info: (event, fields = {}) => logger.info({ event, ...fields }),
  warn: (event, fields = {}) => logger.warn({ event, ...fields }),
  error: (event, fields = {}) => logger.error({ event, ...fields }),
  child: (fields) => wrap(logger.child(fields)),
});

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A logger to stderr. Synchronous, so that the last line before a crash is on disk. */
export const createLog = (role: string, level: LogLevel): Log =>
  wrap(
    pino(
      { level, base: { role, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } },
      pino.destination({ dest: 2, sync: true }),
    ),
  );
