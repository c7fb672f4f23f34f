import type { ToolDefinition } from '../definition/definition.js';
import { sha256Hex } from '../digest.js';
import { canonicalJson, type Json } from '../json.js';
import type { ToolCall } from '../transcript/messages.js';
import type { LimitReached, RequestKind } from './request.js';

/** What a decision is about, and nothing else. */
export interface Subject {
  /** The run's first execution run id. */
  readonly run: string;
  readonly kind: RequestKind;
  readonly call?: ToolCall | undefined;
  /** The tool as the run has pinned it. */
  readonly tool?: ToolDefinition | undefined;
  readonly limit?: LimitReached | undefined;
  /** For `tool_changed`: hash of the tool's current form. */
  readonly definition?: string | undefined;
}

/**
 * Returns the digest that a decision has to name: SHA-256 (hex) over canonical JSON. It covers the run,
 * the call, the tool's whole pinned definition, and the arguments, so that a decision can be used neither
 * for another call nor for other arguments.
 */
export function requestDigest({ run, kind, call, tool, limit, definition }: Subject): string {
  const subject: Json = {
    run,
    kind,
    ...(call && { call: call.id, tool: call.name, arguments: call.digest }),
    ...(tool && { definition: sha256Hex(canonicalJson(toJson(tool))) }),
    ...(limit && { limit: toJson(limit) }),
    ...(definition !== undefined && { form: definition }),
  };
  return sha256Hex(canonicalJson(subject));
}

/** Through JSON, because the history records the definition as JSON. */
function toJson(value: object): Json {
  const json: Json = JSON.parse(JSON.stringify(value));
  return json;
}
