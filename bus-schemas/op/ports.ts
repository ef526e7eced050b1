/**
 * Servers inside a sandbox, on the data plane: HTTP requests, and connections as they are. @paper §3.3
 *
 * The client names each exchange itself. `fetch` and `dial` open one; `send` and `receive` carry its bytes by offset (each may be
 * repeated, several may be under way); `hangup` ends it. An exchange belongs to the Edge that opened it and ends with it, or when
 * nothing is asked of it for a while: CONNECTION_LOST. Nothing of it is ever done twice.
 */
import { z } from 'zod';
import { PORT_LIMITS, SPEC_LIMITS, WIRE_LIMITS } from '../limits.ts';
import { DurationMs } from '../units.ts';

const v = z.literal(1);
const offset = z.number().int().nonnegative();
const waitMs = z.number().int().min(0).max(PORT_LIMITS.longPollMs).default(PORT_LIMITS.longPollMs);

export const ExchangeId = z.string().regex(/^[a-zA-Z0-9_-]{1,40}$/, 'an exchange is named by 1 to 40 letters, digits, _ or -');

/** Port on the loopback of the sandbox, or absolute path of a unix socket in it. */
export const PortTarget = z.union([
  z.number().int().min(1).max(65_535),
  z
    .string()
    .regex(/^\/[^\0]*$/, 'a unix socket is named by its absolute path')
    .refine((path) => Buffer.byteLength(path) <= PORT_LIMITS.socketPathBytes, `the path of a unix socket has at most ${PORT_LIMITS.socketPathBytes} bytes`),
]);
export type PortTarget = z.infer<typeof PortTarget>;

/** In their order, names as they were written; a name may come several times. */
export const HttpHeaders = z
  .array(z.tuple([z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'not a header name'), z.string().regex(/^[^\0\r\n]*$/, 'a header value is one line')]))
  .max(PORT_LIMITS.headerCount)
  .refine((headers) => headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0) <= PORT_LIMITS.headerBytes, 'headers are too large');

export const HttpHead = z.object({ status: z.number().int(), statusText: z.string(), headers: HttpHeaders });
export type HttpHead = z.infer<typeof HttpHead>;

const ref = z.strictObject({ v, id: ExchangeId });
/** `head` is null until it came, and for a connection. `eof`: nothing will follow `offset` and the answer's body. */
const received = z.object({ head: HttpHead.nullable(), offset, eof: z.boolean() });

export const PORT_OPS = {
  /** Sends a request; its body begins with the message's and goes on by `send` when `more`. Answers as soon as the head of the answer is there. */
  fetch: {
    request: ref.extend({
      target: PortTarget,
      method: z.string().regex(/^[A-Za-z]{1,20}$/, 'not a method'),
      path: z
        .string()
        .max(PORT_LIMITS.pathLength)
        .regex(/^\/[\x21-\x7e]*$/, 'a request path begins with / and is encoded'),
      headers: HttpHeaders.default([]),
      more: z.boolean().default(false),
      /** Until the head of the answer; DEADLINE_EXCEEDED then. */
      timeoutMs: DurationMs.min(1).max(SPEC_LIMITS.lifeMsMax).optional(),
      waitMs,
    }),
    response: received,
  },
  /** Opens a connection and leaves its bytes alone. */
  dial: { request: ref.extend({ target: PortTarget }), response: z.object({}) },
  /** Appends the message's body at `offset`; bytes before it are known and skipped. `close`: nothing follows. Answers when it is taken. */
  send: { request: ref.extend({ offset, close: z.boolean().default(false) }), response: z.object({ nextOffset: offset }) },
  /** Bytes from `offset`, which says that everything before it has arrived; waits up to `waitMs` for the first. */
  receive: {
    request: ref.extend({ offset, maxBytes: z.number().int().min(1).max(WIRE_LIMITS.maxChunkBytes).default(WIRE_LIMITS.maxChunkBytes), waitMs }),
    response: received,
  },
  hangup: { request: ref, response: z.object({}) },
} as const satisfies Record<string, { request: z.ZodType; response: z.ZodType }>;

export type PortOpName = keyof typeof PORT_OPS;
export const isPortOp = (op: string): op is PortOpName => Object.hasOwn(PORT_OPS, op);
