import type { JsonObject } from 'perdure';
import type { ModelRequest } from 'perdure/models';

type Message = ModelRequest['messages'][number];

function toWireMessage(message: Message, names: ReadonlyMap<string, string>): JsonObject {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: message.text };
    case 'tool':
      return { role: 'tool', content: message.text, tool_name: names.get(message.callId) };
    case 'assistant': {
      const calls = (message.calls ?? []).map((call): JsonObject => ({
        function: { name: call.name, arguments: JSON.parse(call.arguments) as JsonObject },
      }));
      const toolCalls = calls.length > 0 && { tool_calls: calls };
      return { role: 'assistant', content: message.text, ...toolCalls };
    }
  }
}

/** Returns the body of a request. Ollama identifies calls by tool name instead of id. */
export function toWireRequest(request: ModelRequest, { stream }: { stream: boolean }): JsonObject {
  const { maxOutputTokens, ...options } = request.settings;
  const names = new Map(
    request.messages.flatMap((message) =>
      message.role === 'assistant'
        ? (message.calls ?? []).map((call) => [call.id, call.name] as const)
        : [],
    ),
  );
  // Ollama has no tool choice "none", so tools that must not be called are omitted.
  const tools = request.toolChoice === 'none' ? [] : request.tools;
  return {
    model: request.model,
    stream,
    messages: [
      { role: 'system', content: request.instructions },
      ...request.messages.map((message) => toWireMessage(message, names)),
    ],
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        type: 'function',
        function: { name, description, parameters },
      })),
    }),
    ...(request.responseFormat && { format: request.responseFormat.schema }),
    options: { ...options, ...(maxOutputTokens !== undefined && { num_predict: maxOutputTokens }) },
  };
}
