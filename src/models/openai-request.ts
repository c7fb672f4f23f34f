import type { PromptMessage } from '../core/messages.js';
import type { JsonObject } from '../core/json.js';
import type { Settings } from '../core/definition.js';
import type { ModelRequest, ModelTool } from './model.js';

interface WireCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message as Chat Completions takes it. */
type WireMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | {
      readonly role: 'assistant';
      readonly content: string | null;
      readonly tool_calls?: readonly WireCall[];
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };

interface WireTool {
  readonly type: 'function';
  readonly function: ModelTool;
}

/** The body of `POST /chat/completions`. Settings stand beside these fields under their own names. */
export interface WireRequest {
  readonly model: string;
  readonly messages: readonly WireMessage[];
  readonly tools?: readonly WireTool[];
  readonly tool_choice?: 'auto' | 'required' | 'none';
  readonly stream?: true;
  readonly stream_options?: { readonly include_usage: true };
}

function wireMessage(message: PromptMessage): WireMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: message.text };
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: message.text };
    case 'assistant': {
      const calls = (message.calls ?? []).map((call): WireCall => ({
        id: call.id,
        type: 'function',
        function: { name: call.name, arguments: call.arguments },
      }));
      if (calls.length === 0) return { role: 'assistant', content: message.text };
      return {
        role: 'assistant',
        content: message.text === '' ? null : message.text,
        tool_calls: calls,
      };
    }
  }
}

function wireTool({ name, description, parameters }: ModelTool): WireTool {
  return { type: 'function', function: { name, description, parameters } };
}

function wireSettings({ maxOutputTokens, ...others }: Settings): JsonObject {
  return maxOutputTokens === undefined
    ? others
    : { ...others, max_completion_tokens: maxOutputTokens };
}

/**
 * The request in the wire format, as a function of nothing but the request: equal messages give
 * equal bytes, so the serialised messages of a longer request begin with those of a shorter one
 * and the provider's prompt cache holds.
 *
 * Settings go out verbatim, but cannot replace the fields that perdure itself fills.
 */
export function wireRequest(request: ModelRequest, options: { stream: boolean }): WireRequest {
  return {
    ...wireSettings(request.settings),
    model: request.model,
    messages: [
      { role: 'system', content: request.instructions },
      ...request.messages.map(wireMessage),
    ],
    ...(request.tools.length > 0 && {
      tools: request.tools.map(wireTool),
      tool_choice: request.toolChoice,
    }),
    ...(options.stream && { stream: true, stream_options: { include_usage: true } }),
  };
}
