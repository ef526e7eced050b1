/**
 * Files of a sandbox, on the data plane. @paper §3.3
 *
 * What fits one message is one request. Everything else is a session that the client names itself: `fileOpen`, then chunks by
 * offset (`filePull`, `filePush`, several in flight, each may be repeated), `fileCommit` for what is written, `fileClose`. A session
 * belongs to the Edge that opened it and ends with it, or when nothing is asked of it for a while: FILE_SESSION_LOST, and
 * the client may start again. What was not committed has not happened, but for `append` and `unpack`, which keep what came before.
 *
 * Paths are absolute and resolved inside the sandbox, as a command of the user would see them. They are text as `byte-path.ts` says.
 */
import { z } from 'zod';
import { ClientKey } from '../ids.ts';
import { FILE_LIMITS, SPEC_LIMITS, WIRE_LIMITS } from '../limits.ts';
import { InitUser } from '../sandbox/spec.ts';
import { bytesOfText } from './byte-path.ts';
import { FILE_TYPES } from './file-records.ts';

const v = z.literal(1);
const count = z.number().int().nonnegative();

/** Any bytes but NUL, absolute. */
export const FilePath = z
  .string()
  .regex(/^\//, 'a path must be absolute')
  .refine((s) => !s.includes('\0'), 'a path may not contain NUL')
  .refine((s) => {
    const bytes = bytesOfText(s);
    return bytes !== undefined && bytes.byteLength <= SPEC_LIMITS.pathBytes;
  }, `a path is text whose bytes are known, at most ${SPEC_LIMITS.pathBytes} of them`);
const mode = z.number().int().min(0).max(0o7777);
const user = InitUser.optional();
const offset = count.max(Number.MAX_SAFE_INTEGER);

export const FileEntry = z.object({
  type: z.enum(FILE_TYPES),
  /** What the kernel says: 0 for many files of its own that are not empty. */
  size: count,
  /** Space it takes; less than `size` when it has holes. */
  storedBytes: count,
  mode,
  uid: count,
  gid: count,
  linkCount: count,
  modifiedSeconds: z.number().int(),
  modifiedNanoseconds: count,
  /** Of a symbolic link, unchanged. */
  target: z.string().nullable(),
});
export type FileEntry = z.infer<typeof FileEntry>;

/** What of a tree was not carried as it is. */
export const OMISSIONS = [
  'fifo',
  'socket',
  'device',
  'owner',
  'set-id',
  'xattr',
  'hard-link',
  'mount',
  'unreadable',
  'changed',
  'unknown-type',
  'acl',
  'flags',
  'unknown-record',
] as const;
export const Omission = z.object({ path: z.string(), what: z.enum(OMISSIONS) });
export type Omission = z.infer<typeof Omission>;

/** How a stream ended. `omitted` names the first ones, `omittedCount` counts all. */
export const StreamEnd = z.object({ bytes: count, entries: count, omittedCount: count, omitted: z.array(Omission) });
export type StreamEnd = z.infer<typeof StreamEnd>;

export const FileStream = z.discriminatedUnion('what', [
  /** Bytes of one file until its end, whatever size it claims. A character device needs a limit. */
  z.strictObject({ what: z.literal('read'), path: FilePath, offset: offset.default(0), limit: offset.optional() }),
  /** Entry records (`file-records.ts`) of a directory, in its own order. */
  z.strictObject({ what: z.literal('list'), path: FilePath }),
  /**
   * A tree as an archive (PAX, sparse 1.0, SCHILY.xattr), names relative to `path`; of a file, that file alone. Without `owners` it is for a reader who
   * keeps none: set-id bits, sticky bits and attributes other than `user.` stay behind and are told.
   */
  z.strictObject({ what: z.literal('pack'), path: FilePath, owners: z.boolean().default(true) }),
  /** Event records (`file-records.ts`), the first of them `watching`. */
  z.strictObject({ what: z.literal('watch'), path: FilePath, recursive: z.boolean().default(false) }),
  /** Replaces a file at `fileCommit`, as a whole. `mode` absent: the old file's, 0644 for a new one. */
  z.strictObject({ what: z.literal('write'), path: FilePath, mode: mode.optional(), parents: z.boolean().default(false), sparse: z.boolean().default(false) }),
  /** Adds to the end of a file as it comes; when that fails (a full disk, say) all of it is taken back, unless others have appended meanwhile. */
  z.strictObject({ what: z.literal('append'), path: FilePath, mode: mode.optional(), parents: z.boolean().default(false) }),
  /** Unpacks an archive into a directory, made when it is missing. Stops at the first entry that cannot be right. */
  z.strictObject({ what: z.literal('unpack'), path: FilePath, owners: z.boolean().default(true) }),
]);
export type FileStream = z.infer<typeof FileStream>;

const keyed = z.strictObject({ v, key: ClientKey, user });
const session = z.strictObject({ v, session: ClientKey });

export const FILE_OPS = {
  fileStat: { request: z.strictObject({ v, user, path: FilePath, follow: z.boolean().default(true) }), response: z.object({ entry: FileEntry }) },
  /** The beginning of a file, or any part of it, in the answer's body. `eof`: nothing follows. */
  fileRead: {
    request: z.strictObject({
      v,
      user,
      path: FilePath,
      offset: offset.default(0),
      maxBytes: z.number().int().min(1).max(WIRE_LIMITS.maxChunkBytes).default(WIRE_LIMITS.maxChunkBytes),
      /** Also of a character device, which may never end. */
      devices: z.boolean().default(false),
    }),
    response: z.object({ entry: FileEntry, eof: z.boolean() }),
  },
  /** Replaces a file with the body. Repeated with its key, it is the same write. */
  fileWrite: {
    request: keyed.extend({ path: FilePath, mode: mode.optional(), parents: z.boolean().default(false) }),
    response: z.object({ entry: FileEntry }),
  },
  fileMkdir: {
    request: keyed.extend({ path: FilePath, mode: mode.optional(), parents: z.boolean().default(false) }),
    response: z.object({ entry: FileEntry }),
  },
  /** Within one file system. `replace`: what is at `to`, as rename(2) does. */
  fileMove: { request: keyed.extend({ from: FilePath, to: FilePath, replace: z.boolean().default(true) }), response: z.object({}) },
  /** A file, an empty directory, or with `recursive` a tree. Links are removed, not followed. */
  fileRemove: { request: keyed.extend({ path: FilePath, recursive: z.boolean().default(false) }), response: z.object({ removed: count }) },
  fileOpen: { request: session.extend({ user, stream: FileStream }), response: z.object({ entry: FileEntry.nullable() }) },
  /**
   * Bytes from `offset` on, in the answer's body: when `minBytes` of them are there, the stream is over or `waitMs` have passed. Everything
   * below `ack` may be forgotten. `end`: nothing follows this answer.
   */
  filePull: {
    request: session.extend({
      offset,
      ack: offset,
      maxBytes: z.number().int().min(1).max(WIRE_LIMITS.maxChunkBytes).default(WIRE_LIMITS.maxChunkBytes),
      minBytes: z.number().int().min(1).max(WIRE_LIMITS.maxChunkBytes).default(WIRE_LIMITS.maxChunkBytes),
      waitMs: z.number().int().min(0).max(FILE_LIMITS.longPollMs).default(FILE_LIMITS.longPollMs),
    }),
    response: z.object({ end: StreamEnd.nullable() }),
  },
  /** The body lies at `offset`. What came before is skipped; `nextOffset` says how far everything has been taken. */
  filePush: { request: session.extend({ offset }), response: z.object({ nextOffset: count }) },
  /** All `totalBytes` are there: makes it so. Repeated, it says the same again. */
  fileCommit: { request: session.extend({ totalBytes: offset }), response: z.object({ entry: FileEntry.nullable(), end: StreamEnd.nullable() }) },
  /** Ends it; what was not committed is dropped. */
  fileClose: { request: session, response: z.object({}) },
} as const satisfies Record<string, { request: z.ZodType; response: z.ZodType }>;

export type FileOpName = keyof typeof FILE_OPS;
export const isFileOp = (op: string): op is FileOpName => Object.hasOwn(FILE_OPS, op);
