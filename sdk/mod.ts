/** The SDK's public surface. Everything else in this folder may change between releases. */
export { type ConnectOptions, DsecClient, type ListOptions, connect } from './client.ts';
export { type Context, type Credentials, DEFAULT_CONTEXT_FILE } from './context.ts';
export type { SandboxChange, WatchOptions } from './watch.ts';
export type { RunOptions, WaitOptions } from './run-options.ts';
export type { GroupOptions } from './create/run.ts';
export { Group, type GroupItem, type GroupProgress } from './group.ts';
export { Sandbox } from './sandbox.ts';
export type { SettleOptions } from './transition.ts';
export type { HistoryOptions, StoredCommit } from './commit-history.ts';
export { Command } from './exec/command.ts';
export type { ExecOptions, StartOptions } from './exec/exec-options.ts';
export { ExecEnd, ExecResult } from './exec/exec-result.ts';
export { type FollowOptions, OutputReader } from './exec/output-reader.ts';
export { StdinWriter } from './exec/stdin-writer.ts';
export { DsecError, ERRORS, type ErrorCode, type Fault, type Outcome, type Retry, type WireError } from '#bus/errors.ts';
export type { DropReason, ExecReason, ExecView, OnFull, SignalName, TerminalSize } from '#bus/op/schema.ts';
export type { SandboxState, SandboxStatus } from '#bus/sandbox/state.ts';
export type { Decision, GrantedLives, SandboxView } from '#bus/api/schema.ts';
