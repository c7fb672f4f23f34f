import type { z } from 'zod';
import type { AgentDefinition, OutputDefinition } from '../../core/definition/definition.js';
import { repairBegin } from '../../core/run/on-reply.js';
import { addTokens } from '../../core/rules/spending.js';
import {
  type Json,
  type JsonObject,
  isObject,
  parseJson,
  quoteLargeIntegers,
} from '../../core/text/json.js';
import { type ShownTool, shownTools } from '../../core/transcript/catalog.js';
import type { PromptMessage } from '../../core/transcript/messages.js';
import type { ParsedAnswer } from '../../core/transcript/outcome.js';
import {
  type Model,
  ModelError,
  type ModelReply,
  type ModelRequest,
  type ModelUsage,
  type ResponseSchema,
  estimateUsage,
} from '../../models/model.js';
import {
  CLASSIFY_OUTPUT_TOKENS,
  classifyInstruction,
  classifyReminder,
  countAlternatives,
  scoreClasses,
  voteClasses,
} from '../../output/classes/classes.js';
import { extractJson } from '../../output/extract-json.js';
import { type AnswerParser, parseAnswer } from '../../output/parse-output.js';
import { removeAbsentNulls, restorePinnedSchema } from '../../output/schemas.js';
import { strictPart, toStrictSchema } from '../../output/strict-schema.js';
import { normalizeError } from '../../tools/result/plain.js';
import type { PinnedAgent } from '../activity-context.js';

/**
 * Maximum bytes of an output. A larger one would fill the history, so the model is asked for a
 * shorter one.
 */
const MAX_OUTPUT_BYTES = 128 * 1024;

/**
 * Returns the schema that a model's answer should fit; undefined if the agent's output has none.
 */
export function answerSchema({
  output,
}: Pick<AgentDefinition, 'output'>): ResponseSchema | undefined {
  if (output?.type !== 'json') return undefined;
  const { name, schema } = output;
  const instruction =
    'When you answer, answer only with JSON that fits this JSON schema:\n' + JSON.stringify(schema);
  const strict = toStrictSchema(schema);
  return { name, schema: strict.ok ? strict.schema : schema, instruction };
}

/**
 * Checks an answer against the run's pinned contract, with this worker's code for it. Returns
 * undefined if the agent accepts any text. Never rejects, because the answer has been paid for.
 */
export async function checkModelAnswer(
  pinned: PinnedAgent,
  text: string,
  context: Json,
): Promise<ParsedAnswer | undefined> {
  let parsed: ParsedAnswer;
  try {
    const parser = createAnswerParser(pinned);
    if (parser === null) return undefined;
    parsed = await parseAnswer(parser, text, { context });
  } catch (error) {
    return { ok: false, problem: `the answer cannot be checked: ${normalizeError(error).message}` };
  }
  if (!parsed.ok) return parsed;
  const bytes = Buffer.byteLength(JSON.stringify(parsed.output));
  if (bytes <= MAX_OUTPUT_BYTES) return parsed;
  return { ok: false, problem: `the answer has ${bytes} bytes, at most ${MAX_OUTPUT_BYTES} fit` };
}

/**
 * Returns the zod schema of the agent's output; null if the output has another contract, or none.
 */
export function contractSchema(pinned: PinnedAgent): z.ZodType | null {
  const parser = pinned.definition.output?.type === 'json' ? createAnswerParser(pinned) : null;
  return parser?.type === 'zod' ? parser.schema : null;
}

/**
 * Creates the parser of an agent's answers; null if an answer is any text, or a class. Throws if
 * the pinned schema cannot be read.
 */
export function createAnswerParser({
  definition,
  agent,
  current,
}: PinnedAgent): AnswerParser | null {
  const { output } = definition;
  if (output === undefined) return null;
  const own = agent?.answer?.parser;
  if (current && own) return own;
  switch (output.type) {
    case 'json':
      return { type: 'zod', schema: restorePinnedSchema(output.schema) };
    case 'tags':
      return { type: 'tags', tags: output.tags };
    case 'classes':
      return null;
    case 'function':
      return own?.type === 'function' ? own : { type: 'function', parse: throwMissing };
  }
}

function throwMissing(): never {
  throw new Error('this worker no longer has the function that reads the answers of this agent');
}

type Classes = Extract<OutputDefinition, { type: 'classes' }>;

/** Returns a request for a class, after the messages to classify. */
export function classRequest(request: ModelRequest, { classes, samples }: Classes): ModelRequest {
  const question = { role: 'user', text: classifyInstruction(classes) } as const;
  const withQuestion = { ...request, messages: [...request.messages, question] };
  if (samples !== undefined) return withQuestion;
  const settings = {
    ...request.settings,
    temperature: 0,
    maxOutputTokens: Math.min(
      CLASSIFY_OUTPUT_TOKENS,
      request.settings.maxOutputTokens ?? CLASSIFY_OUTPUT_TOKENS,
    ),
  };
  return { ...withQuestion, settings, logprobs: { top: countAlternatives(classes) } };
}

/**
 * Requests a class: once by the probabilities of tokens, or as often as the agent's `samples`.
 * Throws a `ModelError` if the model returns no probabilities, or if half of the samples or more
 * failed. A refusal, or what a filter withheld, is returned as such, since another attempt would end
 * in the same way.
 */
export async function callForClass(
  model: Model,
  request: ModelRequest,
  { signal, output }: { signal: AbortSignal; output: Classes },
): Promise<ModelReply> {
  if (output.samples === undefined) {
    const reply = await model.call(request, { signal });
    if (reply.logprobs !== undefined || isWithheld(reply)) return reply;
    throw new ModelError(
      `model "${request.model}" returns no token probabilities; use another model, or sample ` +
        'several answers: classify(classes, { samples: 10 })',
      { kind: 'request', type: 'no_logprobs' },
    );
  }
  const times = Array.from({ length: output.samples });
  const ends = await Promise.allSettled(times.map(() => model.call(request, { signal })));
  const replies = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
  const [first] = replies;
  // The replies have been paid for: if most samples succeeded, the failed ones are not repeated.
  if (first === undefined || replies.length * 2 < ends.length) throw firstFailure(ends);
  const usage = sumUsage(replies, request);
  if (replies.every(isWithheld)) return { ...first, usage };
  const text = JSON.stringify(replies.map((reply) => reply.text));
  return { ...first, finish: 'stop', text, usage };
}

function isWithheld({ finish }: ModelReply): boolean {
  return finish === 'refused' || finish === 'filtered';
}

/** Returns the reply with the best class as its text, and the probability of each class. */
export function parseClassReply(
  reply: ModelReply,
  { classes, samples }: Classes,
): { readonly reply: ModelReply; readonly parsed?: ParsedAnswer } {
  if (reply.finish !== 'stop' && reply.finish !== 'length') return { reply };
  const scored =
    samples === undefined
      ? scoreClasses(classes, reply.logprobs ?? [])
      : voteClasses(classes, parseAnswers(reply.text));
  if (!scored.ok) {
    const problem = `${scored.problem} ${classifyReminder(classes)}`;
    return { reply: { ...reply, finish: 'stop' }, parsed: { ok: false, problem } };
  }
  const output: Json = { ...scored.classification };
  const answer = { ...reply, text: scored.classification.best, finish: 'stop' as const };
  return { reply: answer, parsed: { ok: true, output } };
}

function firstFailure(ends: readonly PromiseSettledResult<unknown>[]): unknown {
  const failed = ends.find((end) => end.status === 'rejected');
  return failed?.reason ?? new Error('there are no samples');
}

function parseAnswers(text: string): readonly string[] {
  const answers = parseJson(text);
  return Array.isArray(answers) ? answers.filter((answer) => typeof answer === 'string') : [];
}

const NOTHING_USED: ModelUsage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };

/**
 * Returns the usage of all replies to a request. That of a reply without usage is estimated. The
 * cost is known if each reply has one.
 */
function sumUsage(replies: readonly ModelReply[], request: ModelRequest): ModelUsage {
  const each = replies.map(
    (reply): ModelUsage => reply.usage ?? { ...estimateUsage(request, reply), estimated: true },
  );
  const costs = each.flatMap(({ costUsd }) => (costUsd === undefined ? [] : [costUsd]));
  const sum = each.reduce((so, usage) => addTokens(so, usage), NOTHING_USED);
  const isKnown = costs.length === each.length;
  return { ...sum, ...(isKnown && { costUsd: costs.reduce((so, cost) => so + cost, 0) }) };
}

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
          : { action: call.name, arguments: parseJson(quoteLargeIntegers(call.arguments)) };
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
