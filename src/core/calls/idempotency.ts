import { sha256Hex } from '../digest.js';
import { isObject } from '../json.js';
import { isTraceparent } from '../input/trace-header.js';
import { show } from '../text/format-value.js';
import type { ToolCall } from '../transcript/messages.js';

/** Names a run in the idempotency keys of its calls. */
export interface KeyOrigin {
  readonly namespace: string;
  readonly workflowId: string;
  /** The run's first execution run id; for a called agent, the key of its caller's tool call. */
  readonly firstRunId: string;
}

/** The call that a called agent answers. */
export interface CallOrigin {
  /** The call's own idempotency key: 64 hex digits. */
  readonly key: string;
  /**
   * An earlier run for this call ended without an outcome; its `once` tools may have been executed.
   */
  readonly again?: true;
  /** The span of the reply that requested the call; absent if nothing is traced. */
  readonly span?: string;
}

/** Number of hex digits of a call's key in the id of the run that answers the call. */
const ID_DIGITS = 16;
/** Maximum UTF-16 code units of the caller's id in that id; a workflow id may have 1,000 bytes. */
const MAX_CALLER_CHARACTERS = 300;

/**
 * Returns the origin of a run's keys. Those of a called agent derive from the call's key and the
 * caller's workflow id, which the server sets. They therefore stay the same when the call runs
 * again, and a caller cannot claim another run's keys.
 */
export function keyOrigin(
  run: KeyOrigin & { readonly parentId: string | undefined },
  called: CallOrigin | undefined,
): KeyOrigin {
  const { namespace, workflowId, firstRunId, parentId } = run;
  if (called === undefined || parentId === undefined) return { namespace, workflowId, firstRunId };
  return { namespace, workflowId: parentId, firstRunId: called.key };
}

/**
 * Returns the workflow id of a called agent: `<caller>/<name>-<part of the key>`. The key covers
 * the caller's first run id and the call's arguments, so the same id means the same call. `digest`
 * shortens a caller's id that is too long.
 */
export function calledId(
  { workflowId, name, key }: { workflowId: string; name: string; key: string },
  digest: (text: string) => string,
): string {
  const caller = workflowId.length <= MAX_CALLER_CHARACTERS ? workflowId : digest(workflowId);
  return `${caller}/${name}-${key.slice(0, ID_DIGITS)}`;
}

/** Returns the name in an id from `calledId`. For an agent's own calls, it is the call id. */
export function nameInCalledId(id: string): string {
  const last = id.slice(id.lastIndexOf('/') + 1);
  const end = last.lastIndexOf('-');
  return end === -1 ? last : last.slice(0, end);
}

/** Returns what is wrong with `called` in an input, or null. */
export function checkCalled(value: unknown): string | null {
  if (value === undefined) return null;
  const { key, again, span, ...rest } = isObject(value) ? value : {};
  const isKey = typeof key === 'string' && /^[0-9a-f]{64}$/.test(key);
  const isSpan = span === undefined || isTraceparent(span);
  const fits = isKey && (again === undefined || again === true) && isSpan;
  if (fits && Object.keys(rest).length === 0) return null;
  return `called: expected what a calling workflow sets, got ${show(value)}; omit it`;
}

/**
 * Returns the tool's name and the digest of the arguments: equal for two calls that would have the
 * same effect.
 */
export function signature(call: Pick<ToolCall, 'name' | 'digest'>): string {
  return `${call.name} ${call.digest}`;
}

/** Returns the signature in 16 hex digits, for records that are passed from segment to segment. */
export function shortSignature(call: Pick<ToolCall, 'name' | 'digest'>): string {
  return sha256Hex(signature(call)).slice(0, 16);
}

/**
 * The run that makes a call, and the call's place in that run. Both are the same in every retry,
 * segment, and reset.
 */
export interface CallPlace extends KeyOrigin {
  readonly turn: number;
  readonly step: number;
  readonly index: number;
}

/**
 * Returns the key by which a destination recognizes a repeated execution: 64 hex digits. It depends
 * on neither the run id, which changes with each segment and reset, nor the provider's call id,
 * which may repeat.
 */
export function idempotencyKey(
  place: CallPlace,
  call: Pick<ToolCall, 'name' | 'digest'> & Partial<Pick<ToolCall, 'id' | 'node'>>,
): string {
  const { namespace, workflowId, firstRunId, turn, step, index } = place;
  const own = [namespace, workflowId, firstRunId, turn, step, index, call.name, call.digest];
  // A graph's node has its own places, after which its calls are named.
  const parts = call.node === undefined ? own : [...own, call.id];
  return sha256Hex(JSON.stringify(parts));
}
