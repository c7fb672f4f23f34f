import type { ToolDefinition } from '../definition/definition.js';
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

/** What a tool activity records when the tool gave something. */
export interface ToolSuccess {
  readonly text: string;
  readonly blob?: BlobRef;
  readonly output?: Json;
  /** The value is kept under a name; `text` is then how it begins, but for a tool with `ends`. */
  readonly artifact?: ArtifactMade;
  /** A screenshot; `text` says that there is one. */
  readonly attachments?: readonly Attachment[];
}

/** A person's decision about a call: one whose outcome is unknown, or one whose tool has changed. */
export interface Resolution {
  /** The id of the call. */
  readonly call: string;
  /**
   * Of a call that the provider wants looked at: `retry` acknowledges that and has it executed, `abandon`
   * has it not executed. Of an unknown outcome: it happened (with `result`) · it did not, try again · give up. Of a tool that
   * has changed: it may be called as it is now (`definition` says which form that is).
   */
  readonly as: 'happened' | 'retry' | 'abandon' | 'accept';
  readonly result?: Json;
  readonly definition?: string;
}

export function succeededCall(
  call: ToolCall,
  tool: ToolDefinition,
  success: ToolSuccess,
): CallResult {
  const { text, blob, output, artifact, attachments } = success;
  return {
    id: call.id,
    ok: true,
    text,
    ...(blob && { blob }),
    ...(tool.ends && { output: output ?? text }),
    ...(artifact && { artifact }),
    ...(attachments && { attachments }),
    ...(call.safety && { acknowledged: true }),
    executed: true,
  };
}

/** The text was made on the worker, as an error for the model. */
export function toolErrorCall(call: ToolCall, text: string): CallResult {
  return { id: call.id, ok: false, text, executed: true };
}

export function failedCall(
  call: ToolCall,
  error: { type: CallErrorType; message: string },
): CallResult {
  return toolErrorCall(call, errorText(error));
}

export function cancelledCall(call: ToolCall, tool: ToolDefinition): CallResult {
  const doubt = tool.effect === 'read' ? '' : '; whether it took effect is not known';
  return failedCall(call, { type: 'cancelled', message: `broken off while it ran${doubt}` });
}

export function lostMessage(tool: string, cause: string): string {
  return `${tool}: the worker was lost or the time was up (${cause})`;
}

/** Every attempt of a call that may be repeated was lost with its worker, or ran out of time. */
export function lostCall(call: ToolCall, message: string): CallResult {
  return failedCall(call, { type: 'timeout', message });
}

/** @returns null for `retry`: the call is executed again */
export function resolvedCall(
  call: ToolCall,
  tool: ToolDefinition,
  resolution: Resolution,
): CallResult | null {
  switch (resolution.as) {
    case 'retry':
    case 'accept':
      return null;
    case 'happened': {
      const { result } = resolution;
      const text = confirmed(result);
      return succeededCall(call, tool, { text, ...(result !== undefined && { output: result }) });
    }
    case 'abandon':
      return failedCall(call, {
        type: 'abandoned',
        message: 'whether this took effect is unknown; a person decided to give it up',
      });
  }
}

function confirmed(result: Json | undefined): string {
  if (result === undefined)
    return 'It happened, as a person confirmed; there is no result to show.';
  return typeof result === 'string' ? result : JSON.stringify(result);
}
