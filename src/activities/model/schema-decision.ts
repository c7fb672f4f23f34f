import { shownTools, type ShownTool } from '../../core/catalog/catalog.js';
import type { AgentDefinition } from '../../core/definition/definition.js';
import { isObject, parseJson, type Json, type JsonObject } from '../../core/json.js';
import type { PromptMessage } from '../../core/transcript/messages.js';
import { REPAIR_BEGINS } from '../../core/text/repair-text.js';
import type { ParsedAnswer } from '../../core/reply.js';
import type { ModelReply, ModelRequest, ResponseSchema } from '../../models/model.js';
import { extractJson } from '../../output/extract-json.js';

/** The action that is no tool: the turn's answer. */
const ANSWER = 'answer';

/**
 * A request whose decision is JSON under a schema, for models and servers without tool calling: the
 * tools stand in the instructions, earlier calls and results in the messages, as texts. A pure
 * function of the request, so the prompt's beginning stays the same from step to step.
 */
export function decisionRequest(request: ModelRequest, definition: AgentDefinition): ModelRequest {
  const tools = request.toolChoice === 'none' ? [] : shownTools(definition);
  const { responseFormat: _, ...rest } = request;
  const names = new Map(request.messages.flatMap(callNames));
  return {
    ...rest,
    instructions: `${request.instructions}\n\n${howToDecide(definition)}`,
    messages: request.messages.map((message, index) =>
      isRefused(request.messages, index) ? message : written(message, { names, definition }),
    ),
    tools: [],
    toolChoice: 'none',
    responseFormat: decisionSchema(tools, definition),
  };
}

/** The reply as one with calls or an answer; `parsed` says what is wrong where it is no decision. */
export function readDecision(
  reply: ModelReply,
  definition: AgentDefinition,
): { readonly reply: ModelReply; readonly parsed?: ParsedAnswer } {
  if (reply.finish !== 'stop' && reply.finish !== 'calls') return { reply };
  const found = extractJson(reply.text);
  if (!found.ok) return { reply, parsed: found };
  const decision = isObject(found.value) ? found.value['decision'] : undefined;
  const chosen = isObject(decision) ? decision : found.value;
  if (!isObject(chosen) || typeof chosen['action'] !== 'string') {
    const problem = `there is no "action"; give ${example(definition)}`;
    return { reply, parsed: { ok: false, problem } };
  }
  const { action } = chosen;
  const answer = chosen['answer'];
  // A tool may have this name too, and then its arguments tell that it is meant.
  const isTool = answer === undefined && definition.tools.some(({ name }) => name === ANSWER);
  if (action === ANSWER && !isTool) {
    const text = typeof answer === 'string' ? answer : JSON.stringify(answer ?? '');
    return { reply: { ...reply, text, calls: [], finish: 'stop' } };
  }
  const given = chosen['arguments'];
  const call = { name: action, arguments: JSON.stringify(given ?? {}) };
  return { reply: { ...reply, text: '', calls: [call], finish: 'calls' } };
}

function howToDecide(definition: AgentDefinition): string {
  const tools = shownTools(definition).map(
    ({ name, description, parameters }) =>
      `- ${name}: ${description}\n  arguments: ${JSON.stringify(parameters)}`,
  );
  return [
    'Decide what to do next. Reply with JSON only, nothing beside it: either call one tool, with',
    '{"decision": {"action": "<name of the tool>", "arguments": {…}}}',
    'or end with {"decision": {"action": "answer", "answer": …}}.',
    tools.length === 0 ? 'There are no tools.' : 'The tools:',
    ...tools,
  ].join('\n');
}

function example(definition: AgentDefinition): string {
  const [tool] = shownTools(definition);
  const call =
    tool === undefined ? '' : `{"decision": {"action": "${tool.name}", "arguments": {…}}} or `;
  return `${call}{"decision": {"action": "answer", "answer": …}}`;
}

function decisionSchema(tools: readonly ShownTool[], { output }: AgentDefinition): ResponseSchema {
  const answer: JsonObject = output?.type === 'json' ? output.schema : { type: 'string' };
  const variants: readonly Json[] = [
    ...tools.map(({ name, parameters }) => variant(name, { arguments: parameters })),
    variant(ANSWER, { answer }),
  ];
  const schema = {
    type: 'object',
    properties: { decision: { anyOf: variants } },
    required: ['decision'],
    additionalProperties: false,
  };
  return { name: 'decision', schema };
}

function variant(action: string, rest: JsonObject): JsonObject {
  const properties = { action: { type: 'string', enum: [action] }, ...rest };
  return {
    type: 'object',
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
}

/** A message as the model itself would have written it, or as it can read it. */
function written(
  message: PromptMessage,
  { names, definition }: { names: ReadonlyMap<string, string>; definition: AgentDefinition },
): PromptMessage {
  switch (message.role) {
    case 'user':
      return message;
    case 'tool': {
      const name = names.get(message.callId) ?? 'a call';
      return { role: 'user', text: `Result of ${name}:\n${message.text}` };
    }
    case 'assistant': {
      const [call] = message.calls ?? [];
      const decision =
        call === undefined
          ? { action: ANSWER, answer: answerIn(message.text, definition) }
          : { action: call.name, arguments: parseJson(call.arguments) };
      return { role: 'assistant', text: JSON.stringify({ decision }) };
    }
  }
}

/** What was no decision is shown as it was, not as one. */
function isRefused(messages: readonly PromptMessage[], index: number): boolean {
  const next = messages[index + 1];
  return next?.role === 'user' && next.text.startsWith(REPAIR_BEGINS);
}

/** Under a schema, the value; else the text. */
function answerIn(text: string, { output }: AgentDefinition): unknown {
  return output?.type === 'json' ? (parseJson(text) ?? text) : text;
}

function callNames(message: PromptMessage): readonly (readonly [string, string])[] {
  if (message.role !== 'assistant') return [];
  return (message.calls ?? []).map(({ id, name }) => [id, name]);
}
