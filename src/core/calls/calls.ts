import { sha256Hex } from '../digest.js';
import type { KeyOrigin } from './called.js';
import type { Json } from '../json.js';
import type { ArtifactMade, Attachment, BlobRef, ToolCall } from '../transcript/messages.js';
import type { Usage } from '../outcome.js';

/** What became of one call; each call gets exactly one. */
export interface CallResult {
  readonly id: string;
  readonly ok: boolean;
  /** What the model reads. */
  readonly text: string;
  readonly blob?: BlobRef;
  /** The tool's value where it was no plain text; only kept for a tool with `ends`. */
  readonly output?: Json;
  /** The value is kept under a name; `text` is how it begins, until the name is given (`takeArtifacts`). */
  readonly artifact?: ArtifactMade;
  /** A screenshot. */
  readonly attachments?: readonly Attachment[];
  /** A person has let it be executed in spite of the provider's doubts. */
  readonly acknowledged?: true;
  /** The tool ran, or may have; false for what the engine answered itself. */
  readonly executed: boolean;
  /** What an agent that was called has used. */
  readonly usage?: Usage;
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
  | 'cancelled'
  | 'outcome_unknown'
  | 'abandoned'
  | 'agent_failed';

/** A tool message for something that did not work: `{"error":{"type","message"}}`. */
export function errorText(error: { type: CallErrorType; message: string }): string {
  return JSON.stringify({ error: { type: error.type, message: error.message } });
}

/** A result that the engine gives by itself, without executing anything. */
export function refusal(id: string, error: { type: CallErrorType; message: string }): CallResult {
  return { id, ok: false, text: errorText(error), executed: false };
}

/** Equal for two calls that would do the same. */
export function signature(call: Pick<ToolCall, 'name' | 'digest'>): string {
  return `${call.name} ${call.digest}`;
}

/** The same in 16 hex digits, for a record that is carried from segment to segment. */
export function shortSignature(call: Pick<ToolCall, 'name' | 'digest'>): string {
  return sha256Hex(signature(call)).slice(0, 16);
}

/**
 * The place of a call: the run that makes it, and where in that run. It is equal in every retry,
 * segment, and reset.
 */
export interface CallPlace extends KeyOrigin {
  readonly turn: number;
  readonly step: number;
  readonly index: number;
}

/**
 * Returns the key under which a destination recognizes a repeated execution: 64 hex digits.
 * Neither the run id (changes at continue-as-new and reset) nor the provider's call id (may repeat)
 * is part of it.
 */
export function idempotencyKey(place: CallPlace, call: Pick<ToolCall, 'name' | 'digest'>): string {
  const { namespace, workflowId, firstRunId, turn, step, index } = place;
  const parts = [namespace, workflowId, firstRunId, turn, step, index, call.name, call.digest];
  return sha256Hex(JSON.stringify(parts));
}
