import { shownTools, type ShownTool } from '../../core/catalog/catalog.js';
import type { AgentDefinition } from '../../core/definition/definition.js';
import { isObject, parseJson, type JsonObject } from '../../core/json.js';
import type { PromptMessage } from '../../core/transcript/messages.js';
import { repairBegin } from '../../core/text/repair-text.js';
import type { ParsedAnswer } from '../../core/reply.js';
import type { ModelReply, ModelRequest, ResponseSchema } from '../../models/model.js';
import { removeAbsentNulls } from '../../output/absent-nulls.js';
import { extractJson } from '../../output/extract-json.js';
import { strictPart, toStrictSchema } from '../../output/strict-schema.js';

/** The action that gives the turn's answer instead of calling a tool. */
const ANSWER = 'answer';

/**
 * Returns a request whose reply is a decision as JSON, for models and servers without tool calling.
 * The instructions describe the tools, and earlier calls and results become texts. It is a pure
 * function of the request, so the prompt's beginning stays the same from step to step.
 */
export function decisionRequest(request: ModelRequest, definition: AgentDefinition): ModelRequest {
  const tools = request.toolChoice === 'none' ? [] : shownTools(definition);
  const { responseFormat: _, ...rest } = request;
  const names = new Map(request.messages.flatMap(callNames));
  const begin = repairBegin(definition);
  return {
    ...rest,
    instructions: `${request.instructions}\n\n${decisionInstructions(definition)}`,
    messages: request.messages.map((message, index) =>
      isRepair(request.messages[index + 1], begin)
        ? message
        : toText(message, { names, definition }),
    ),
    tools: [],
    toolChoice: 'none',
    responseFormat: decisionSchema(tools, definition),
  };
}

/**
 * Returns a decision as a reply with a call or an answer. If it is not a decision, `parsed` has the
 * problem.
 */
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
    const problem = `"action" is missing; give ${example(definition)}`;
    return { reply, parsed: { ok: false, problem } };
  }
  const { action } = chosen;
  const answer = chosen['answer'];
  // A tool may also have this name; a decision without an answer then refers to the tool.
  const isTool = answer === undefined && definition.tools.some(({ name }) => name === ANSWER);
  if (action === ANSWER && !isTool) {
    const text = typeof answer === 'string' ? answer : JSON.stringify(answer ?? '');
    return { reply: { ...reply, text, calls: [], finish: 'stop' } };
  }
  const call = { name: action, arguments: argumentsOf(chosen['arguments'], action, definition) };
  return { reply: { ...reply, text: '', calls: [call], finish: 'calls' } };
}

/** Returns the arguments of a call as JSON text, without nulls for absent keys. */
function argumentsOf(given: unknown, name: string, definition: AgentDefinition): string {
  if (typeof given === 'string') return given;
  const schema = shownTools(definition).find((tool) => tool.name === name)?.parameters;
  if (schema === undefined || !isObject(given)) return JSON.stringify(given ?? {});
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parsed from JSON
  return JSON.stringify(removeAbsentNulls(given as JsonObject, schema));
}

function decisionInstructions(definition: AgentDefinition): string {
  const tools = shownTools(definition).map(
    ({ name, description, parameters }) =>
      `- ${name}: ${description}\n  arguments: ${JSON.stringify(parameters)}`,
  );
  return [
    'Decide what to do next. Reply only with JSON: either call one tool, with',
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

/**
 * Returns the schema of a decision. It is strict if that is possible; then arguments and answers
 * that have no strict schema are a JSON text.
 */
function decisionSchema(tools: readonly ShownTool[], { output }: AgentDefinition): ResponseSchema {
  const answer: JsonObject = output?.type === 'json' ? output.schema : { type: 'string' };
  const general = schemaOf([
    ...tools.map(({ name, parameters }) => variant(name, { arguments: parameters })),
    variant(ANSWER, { answer }),
  ]);
  const parts = tools.map(({ name, parameters }, index) =>
    strictPart(parameters, {
      prefix: `t${index}_`,
      text: `the arguments of ${name}: a JSON object as text`,
    }),
  );
  const strictAnswer = strictPart(answer, { prefix: 'answer_', text: 'the answer: JSON as text' });
  const definitions = [...parts, strictAnswer].flatMap((part) => part.definitions);
  const strict = toStrictSchema({
    ...schemaOf([
      ...tools.map(({ name }, index) => variant(name, { arguments: parts[index]?.schema ?? {} })),
      variant(ANSWER, { answer: strictAnswer.schema }),
    ]),
    ...(definitions.length > 0 && { $defs: Object.fromEntries(definitions) }),
  });
  return { name: 'decision', schema: strict.ok ? strict.schema : general };
}

function schemaOf(variants: readonly JsonObject[]): JsonObject {
  return {
    type: 'object',
    properties: { decision: { anyOf: variants } },
    required: ['decision'],
    additionalProperties: false,
  };
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

/** Returns a message in decision form: calls as decisions, results as texts. */
function toText(
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
          ? { action: ANSWER, answer: toAnswerValue(message.text, definition) }
          : { action: call.name, arguments: parseJson(call.arguments) };
      return { role: 'assistant', text: JSON.stringify({ decision }) };
    }
  }
}

/**
 * Whether a message requests a repair. The preceding reply was not a decision and is shown
 * unchanged.
 */
function isRepair(message: PromptMessage | undefined, begin: string): boolean {
  return message?.role === 'user' && message.text.startsWith(begin);
}

/** Returns the value of an answer if the agent's output has a schema, else its text. */
function toAnswerValue(text: string, { output }: AgentDefinition): unknown {
  return output?.type === 'json' ? (parseJson(text) ?? text) : text;
}

function callNames(message: PromptMessage): readonly (readonly [string, string])[] {
  if (message.role !== 'assistant') return [];
  return (message.calls ?? []).map(({ id, name }) => [id, name]);
}
