import type { BudgetName } from '../definition/definition.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import { type Json, isObject, parseJson, sha256Hex } from '../text/json.js';
import { show } from '../text/text.js';
import type { Attachment, BlobRef, CreatedArtifact, ToolCall, ToolMessage } from './messages.js';
import type { AttemptReport, Usage } from './outcome.js';

/** The result of one call. Each call gets exactly one. */
export interface CallResult {
  readonly id: string;
  readonly ok: boolean;
  /** What the model reads. */
  readonly text: string;
  readonly blob?: BlobRef;
  /** Why `text` is not the whole result, and no blob has it; absent if one of the two is whole. */
  readonly lost?: string;
  /** The tool's value; only for a tool with `ends` and for the tools of a graph. */
  readonly output?: Json;
  /**
   * The value as an artifact. `text` is its beginning until the artifact has a name
   * (`takeArtifacts`).
   */
  readonly artifact?: CreatedArtifact;
  /** The name of the artifact, once it has one. */
  readonly artifactName?: string;
  /** A screenshot. */
  readonly attachments?: readonly Attachment[];
  /** A person has acknowledged the provider's safety checks. */
  readonly acknowledged?: true;
  /** A person, a rule, or the expiry of a request denied the call. */
  readonly denied?: true;
  /** A person's note with the answer to a question of a graph. */
  readonly note?: string;
  /** Who answered a plan: see `RecordedDecision`. */
  readonly by?: string;
  readonly door?: string;
  /** A person decided; see `keepsEarlierMeaning`. */
  readonly patched?: true;
  /** The request for a decision expired. */
  readonly expired?: true;
  /** The grant under which the call was made without asking again. */
  readonly grant?: string;
  /**
   * The tool was executed, or may have been; false for a result that the engine itself produces.
   */
  readonly executed: boolean;
  /** The usage of a called agent. */
  readonly usage?: Usage;
  /** When it arrived, Unix time in ms; absent if it arrived with the last result of its batch. */
  readonly at?: number;
  /** The limit that allowed a node's function no further model call. */
  readonly limit?: BudgetName;
}

/** The kinds of error that a model can read in a tool message. */
export type CallErrorType =
  | 'unknown_tool'
  | 'invalid_json'
  | 'invalid_arguments'
  | 'truncated'
  | 'tool_error'
  | 'timeout'
  | 'not_executed'
  | 'denied'
  | 'cancelled'
  | 'outcome_unknown'
  | 'abandoned'
  | 'agent_failed';

/**
 * Returns, for people, why the work of a node has failed. `tool_error` is left out: it is also the type of an
 * error that a node's function has thrown, without any tool.
 */
export function nodeFailureText({ type, message }: CallFailure): string {
  return type === 'tool_error' && message !== '' ? message : `${type}: ${message}`;
}

/** Returns the tool message for an error: `{"error":{"type","message"}}`. */
export function errorText(error: { type: CallErrorType; message: string }): string {
  return JSON.stringify({ error: { type: error.type, message: error.message } });
}

/** A failed call, as the model reads it. */
interface CallFailure {
  /** A `CallErrorType`, or that of another version. */
  readonly type: string;
  readonly message: string;
}

const ERROR_TEXT = /^\{"error":\{"type":"(\w+)"(?:,"message":"((?:[^"\\]|\\.)*))?/;
/** A note of the engine, in a line of its own, may precede the text of a result. */
const AFTER_NOTE = ']\n{"error":';

/**
 * Returns the failure that a tool message reports; null if the call succeeded. A text that reads
 * like an error counts only in a message that an older version has recorded, without `ok`.
 */
export function failureOf({ ok, text }: Pick<ToolMessage, 'ok' | 'text'>): CallFailure | null {
  if (ok === true) return null;
  const note = ok === false && text.startsWith('[') ? text.indexOf(AFTER_NOTE) : -1;
  const [, type, raw = ''] = ERROR_TEXT.exec(note < 0 ? text : text.slice(note + 2)) ?? [];
  if (type !== undefined) {
    const message = parseJson(`"${raw}"`);
    return { type, message: typeof message === 'string' ? message : raw };
  }
  return ok === false ? { type: 'tool_error', message: text } : null;
}

/**
 * Returns the field of a tool message that records whether the call succeeded. A success needs none
 * unless its text reads like a failure.
 */
export function recordedOk({ ok, text }: Pick<CallResult, 'ok' | 'text'>): { ok?: boolean } {
  if (!ok) return { ok: false };
  return failureOf({ text }) === null ? {} : { ok: true };
}

/** Returns an error that the engine produces without executing anything. */
export function refusal(id: string, error: { type: CallErrorType; message: string }): CallResult {
  return { id, ok: false, text: errorText(error), executed: false };
}

/** The recorded result of a tool's activity when the tool succeeds. */
export interface ToolSuccess {
  readonly text: string;
  readonly blob?: BlobRef;
  /** See `CallResult`. Workers of earlier versions omit it. */
  readonly lost?: string;
  readonly output?: Json;
  /** The value as an artifact. `text` is then its beginning, except for a tool with `ends`. */
  readonly artifact?: CreatedArtifact;
  /** A screenshot; `text` describes it. */
  readonly attachments?: readonly Attachment[];
  /** The parts that could not be stored. */
  readonly reports?: readonly AttemptReport[];
  /**
   * The call as its tool describes it to people, if it can be undone and no such text was recorded before its
   * execution, for example because its arguments had references. Workers of earlier versions omit it.
   */
  readonly summary?: string;
}

/** Returns the result of a tool that succeeded. */
export function succeededCall(
  call: ToolCall,
  tool: ToolDefinition,
  success: ToolSuccess,
): CallResult {
  const { text, blob, lost, output, artifact, attachments } = success;
  return {
    id: call.id,
    ok: true,
    text,
    ...(blob && { blob }),
    ...(lost !== undefined && { lost }),
    ...((tool.ends || (tool.value && !artifact)) && { output: output ?? text }),
    ...(artifact && { artifact }),
    ...(attachments && { attachments }),
    ...(call.safety && { acknowledged: true }),
    executed: true,
  };
}

/**
 * Returns the result of a tool that failed, with the error text that the worker made for the model.
 */
export function toolErrorCall(call: ToolCall, text: string): CallResult {
  return { id: call.id, ok: false, text, executed: true };
}

/** Returns the result of a call that was executed and failed. */
export function failedCall(
  call: ToolCall,
  error: { type: CallErrorType; message: string },
): CallResult {
  return toolErrorCall(call, errorText(error));
}

/** Returns the result of a call that was canceled while it ran. */
export function cancelledCall(call: ToolCall, tool: ToolDefinition): CallResult {
  const doubt = tool.effect === 'read' ? '' : '; whether it took effect is unknown';
  return failedCall(call, { type: 'cancelled', message: `interrupted during execution${doubt}` });
}

/** Returns the text for a call whose activity timed out. */
export function lostMessage(tool: string, cause: string): string {
  return `${tool}: the worker was lost or the call timed out (${cause})`;
}

/** Returns the result of a repeatable call after every attempt lost its worker or timed out. */
export function lostCall(call: ToolCall, message: string): CallResult {
  return failedCall(call, { type: 'timeout', message });
}

/** Returns the result of a call that a person confirmed as executed. */
export function confirmedCall(
  call: ToolCall,
  tool: ToolDefinition,
  result: Json | undefined,
): CallResult {
  const text = confirmed(result);
  return succeededCall(call, tool, { text, ...(result !== undefined && { output: result }) });
}

/** Returns the result of a call with an unknown outcome that a person abandons. */
export function abandonedCall(call: ToolCall, note = ''): CallResult {
  const why = note === '' ? '' : `: ${note}`;
  return failedCall(call, {
    type: 'abandoned',
    message: `whether this took effect is unknown; a person abandoned it${why}`,
  });
}

/** Returns the result of a call that was not executed because a person or a rule denied it. */
export function deniedCall(call: Pick<ToolCall, 'id'>, why: string): CallResult {
  return { ...refusal(call.id, { type: 'denied', message: `not executed: ${why}` }), denied: true };
}

function confirmed(result: Json | undefined): string {
  if (result === undefined)
    return 'A person confirmed that the call took effect; no result is available.';
  return typeof result === 'string' ? result : JSON.stringify(result);
}

/**
 * The header with a run's trace, in the form of Temporal's OpenTelemetry interceptors: a map of
 * strings, as propagators write it.
 */
export const TRACE_HEADER = '_tracer-data';

/** The place in the tree of spans of work below a span of the same run. */
export interface SpanPlace {
  /** The parent span as a W3C `traceparent`; absent if nothing is traced. */
  readonly span?: string;
}

/** Returns whether a value is a `traceparent`, of 55 characters. */
export function isTraceparent(value: unknown): value is string {
  return (
    typeof value === 'string' && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(value)
  );
}

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
 * shortens a caller's id that is too long; the tenant with which it begins stays, because its key encrypts
 * the run.
 */
export function calledId(
  {
    workflowId,
    name,
    key,
    tenant = '',
  }: { workflowId: string; name: string; key: string; tenant?: string | undefined },
  digest: (text: string) => string,
): string {
  const lead = tenant !== '' && workflowId.startsWith(`${tenant}/`) ? `${tenant}/` : '';
  const isShort = workflowId.length <= MAX_CALLER_CHARACTERS;
  const caller = isShort ? workflowId : lead + digest(workflowId);
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
interface CallPlace extends KeyOrigin {
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
