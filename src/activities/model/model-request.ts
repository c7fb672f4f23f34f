import type { AgentDefinition } from '../../core/definition/definition.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { COMPACTION_INSTRUCTIONS, renderForCompaction } from '../../core/rules/compaction.js';
import type { CallModelInput } from '../../core/run/contract.js';
import { planSchema } from '../../core/state/turn-definition.js';
import { type Json, type JsonObject, quoteLargeIntegers, textField } from '../../core/text/json.js';
import { shownTools, withInvocations } from '../../core/transcript/catalog.js';
import type { BlobRef, PromptMessage } from '../../core/transcript/messages.js';
import { takeTurns } from '../../core/transcript/transcript.js';
import {
  ModelError,
  type ModelRequest,
  type ResponseSchema,
  toParameters,
} from '../../models/model.js';
import { isNode, listNamedNodes, listNodes, removeAbsentNulls } from '../../output/schemas.js';
import { type SchemaPart, strictPart, toStrictSchema } from '../../output/strict-schema.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { NotAttachedError, attachedText } from '../../storage/owned-text.js';
import { parseArguments } from '../../tools/arguments/arguments.js';
import { type PinnedAgent, planNode } from '../activity-context.js';
import type { Prompt } from '../prompt.js';
import { answerSchema, classRequest, decisionRequest } from './answer-formats.js';

const REF = { $ref: '#/$defs/reference' } as const;
/** Its first property differs from those of the objects beside it, as strict mode requires. */
const BEGIN = 'from';
const REFERENCE = {
  type: 'object',
  description: 'a result of an earlier action, or a part of it, in place of a value',
  properties: {
    [BEGIN]: { type: 'string', description: 'the id of the earlier action, such as a1' },
    path: { type: 'string', description: 'such as data.id; empty for the whole result' },
  },
  required: [BEGIN, 'path'],
  additionalProperties: false,
} as const;

const formats = new WeakMap<readonly ToolDefinition[], ResponseSchema>();

/**
 * Returns the schema of a whole plan for the model: a union of an action for each tool, with the
 * tool's own arguments, in each of which a reference may take the place of a value. The arguments of
 * a tool without a strict schema are a JSON text. If all of it is too large to be enforced, the
 * schema is the general one, which is sent without `strict`.
 */
export function planFormat(tools: readonly ToolDefinition[]): ResponseSchema {
  const known = formats.get(tools);
  if (known !== undefined) return known;
  const general = planSchema(tools.map(({ name }) => name));
  const strict = toStrictSchema(unionSchema(tools.filter(({ kind }) => kind !== 'wait')));
  const instruction =
    'When you answer, answer only with JSON that fits this JSON schema:\n' +
    JSON.stringify(general);
  const format = { name: 'plan', schema: strict.ok ? strict.schema : general, instruction };
  formats.set(tools, format);
  return format;
}

function unionSchema(tools: readonly ToolDefinition[]): JsonObject {
  const parts = tools.map((tool, index) => argumentsSchema(tool, `t${index}_`));
  const actions = tools.map(({ name }, index): JsonObject => {
    const properties = {
      tool: { type: 'string', enum: [name] },
      id: { type: 'string', description: 'a1, a2, …' },
      arguments: parts[index]?.schema ?? {},
      after: {
        type: 'array',
        items: { type: 'string' },
        description: 'actions that must finish first',
      },
    };
    return closed(properties);
  });
  const answer = {
    anyOf: [{ type: 'string' }, { type: 'null' }],
    description: 'the answer, if there is nothing to do; otherwise null',
  };
  const list = { type: 'array', items: actions.length === 1 ? actions[0] : { anyOf: actions } };
  const definitions = Object.fromEntries(parts.flatMap((part) => part.definitions));
  return {
    ...closed({ actions: list, answer }),
    $defs: { ...definitions, reference: REFERENCE },
  };
}

function closed(properties: JsonObject): JsonObject {
  const required = Object.keys(properties);
  return { type: 'object', properties, required, additionalProperties: false };
}

function argumentsSchema({ name, parameters }: ToolDefinition, prefix: string): SchemaPart {
  const text = `the arguments of ${name}: a JSON object as text, which fits the schema of the tool`;
  const { schema, definitions } = strictPart(parameters, { prefix, text });
  const begins = new Map(definitions.map(([key, one]) => [key, beginOf(one)]));
  // A text has no references inside.
  if (schema['type'] === 'string') return { schema, definitions };
  return {
    schema: withReferences(schema, begins),
    definitions: definitions.map(([key, one]) => [key, withReferences(one, begins)] as const),
  };
}

/** The first property of each definition. */
type Begins = ReadonlyMap<string, string | undefined>;

/** Returns a strict schema in which each value inside may be a reference. */
function withReferences(node: JsonObject, begins: Begins): JsonObject {
  const { properties, items, anyOf } = node;
  const named = listNamedNodes(properties).map(([key, one]) => [key, orReference(one, begins)]);
  return {
    ...node,
    ...(isNode(properties) && { properties: Object.fromEntries(named) }),
    ...(isNode(items) && { items: orReference(items, begins) }),
    ...(anyOf !== undefined && {
      anyOf: listNodes(anyOf).map((one) => withReferences(one, begins)),
    }),
  };
}

function orReference(node: JsonObject, begins: Begins): JsonObject {
  // A constant tells the objects of a union apart.
  const { const: constant, enum: values } = node;
  if (constant !== undefined || (Array.isArray(values) && values.length === 1)) return node;
  const { description, ...rest } = withReferences(node, begins);
  const { anyOf, ...others } = rest;
  const isUnion = anyOf !== undefined && Object.keys(others).length === 0;
  const alternatives = isUnion ? listNodes(anyOf) : [rest];
  const isAmbiguous = [node, ...listNodes(node['anyOf'])].some((one) => {
    const key = textField(one, '$ref').replace('#/$defs/', '');
    return (begins.get(key) ?? beginOf(one)) === BEGIN;
  });
  const all = isAmbiguous ? alternatives : [...alternatives, REF];
  return { ...(description !== undefined && { description }), anyOf: all };
}

function beginOf({ properties }: JsonObject): string | undefined {
  return listNamedNodes(properties)[0]?.[0];
}

/** The form of a reference in a reply under `planFormat`. */
const ID = /^a\d{1,4}$/;

/**
 * Returns a plan in one form, whatever form the schema required: arguments as objects without nulls
 * for absent ones, and references as `{"$ref", "path"}`.
 */
export function normalizedPlan(value: Json, tools: readonly ToolDefinition[]): Json {
  if (!isNode(value) || !Array.isArray(value['actions'])) return value;
  const given: readonly Json[] = value['actions'];
  const ids = given.flatMap((one) =>
    isNode(one) && typeof one['id'] === 'string' ? one['id'] : [],
  );
  const actions = given.map((action): Json => {
    if (!isNode(action)) return action;
    const { arguments: written, after, ...rest } = action;
    const tool = tools.find(({ name }) => name === action['tool']);
    const read = typeof written === 'string' ? jsonObject(written) : written;
    const named = withReferenceNames(read ?? null, ids);
    const present = tool && isNode(named) ? removeAbsentNulls(named, tool.parameters) : named;
    return {
      ...rest,
      ...(read !== undefined && { arguments: present }),
      ...(after !== undefined && after !== null && { after }),
    };
  });
  return { ...value, actions };
}

/** Returns the object that a text holds, with its numbers as they are; any other text as it is. */
function jsonObject(text: string): Json {
  const parsed = parseArguments(quoteLargeIntegers(text));
  return parsed.ok ? parsed.value : text;
}

function withReferenceNames(value: Json, ids: readonly string[]): Json {
  if (Array.isArray(value)) return value.map((one: Json) => withReferenceNames(one, ids));
  if (!isNode(value)) return value;
  const { [BEGIN]: ref, path, ...rest } = value;
  const isReference =
    typeof ref === 'string' &&
    typeof path === 'string' &&
    Object.keys(rest).length === 0 &&
    ID.test(ref) &&
    ids.includes(ref);
  if (isReference) return { $ref: ref, path };
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, withReferenceNames(one ?? null, ids)]),
  );
}

/** The share of a model's window that the messages of a summary may fill. */
const SUMMARY_SHARE = 0.7;
const CHARACTERS_PER_TOKEN = 3;
/** Maximum characters of the messages of a summary if the model's window is unknown. */
const DEFAULT_CHARACTERS = 200_000;
/** Minimum characters of one message after it is cut. */
const MIN_CHARACTERS = 400;

/** Creates the request of a model call: a pure function of the prompt and the activity's input. */
export function createModelRequest(
  { blobs }: { readonly blobs: BlobStore },
  { run, pinned, messages }: Pick<Prompt, 'run' | 'pinned' | 'messages'>,
  input: CallModelInput,
): ModelRequest {
  const { definition } = pinned;
  const parameters = toParameters(input.without ?? []);
  const request = {
    ...baseRequest(pinned, messages, input),
    // Parameters that the server refused earlier in this run are omitted.
    ...(parameters.length > 0 && { without: parameters }),
  };
  return withFiles(withOutputForm(request, definition, input), { run, blobs });
}

function baseRequest(
  pinned: PinnedAgent,
  messages: readonly PromptMessage[],
  input: CallModelInput,
): ModelRequest {
  const { definition } = pinned;
  const { model, settings } = definition;
  if (input.compact !== undefined) {
    const text = renderWithin(messages.slice(0, input.compact), input);
    return {
      model,
      instructions: COMPACTION_INSTRUCTIONS,
      messages: [{ role: 'user', text }],
      tools: [],
      toolChoice: 'none',
      settings,
    };
  }
  const isPlan = planNode(pinned)?.planning === 'schema';
  const responseFormat = isPlan ? planFormat(definition.tools) : answerSchema(definition);
  return {
    model,
    instructions: definition.instructions,
    messages: takeTurns(withInvocations(definition, messages)),
    tools: shownTools(definition),
    toolChoice: input.closing ? 'none' : definition.toolChoice,
    ...(definition.texts?.demandCall !== undefined && { demandCall: definition.texts.demandCall }),
    settings: capSettings(definition, input),
    ...(responseFormat && { responseFormat }),
  };
}

/**
 * Returns the request for a class or for a decision as JSON, if the agent's replies have that form.
 */
function withOutputForm(
  request: ModelRequest,
  definition: AgentDefinition,
  { compact }: CallModelInput,
): ModelRequest {
  if (compact !== undefined) return request;
  if (definition.output?.type === 'classes') return classRequest(request, definition.output);
  return definition.decide === 'schema' ? decisionRequest(request, definition) : request;
}

/**
 * Renders messages for a summary. Long texts are cut as needed to fit all of them into the model's
 * window.
 */
function renderWithin(messages: readonly PromptMessage[], { window }: CallModelInput): string {
  const room =
    window === undefined ? DEFAULT_CHARACTERS : window * SUMMARY_SHARE * CHARACTERS_PER_TOKEN;
  const whole = renderForCompaction(messages);
  if (whole.length <= room) return whole;
  const each = Math.max(MIN_CHARACTERS, Math.floor(room / messages.length / 2));
  return renderForCompaction(
    messages.map((message) => ({ ...message, text: headAndTail(message.text, each) })),
  );
}

/** Cuts a text: three quarters of the result are its beginning, and one quarter is its end. */
function headAndTail(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const head = Math.floor(characters * 0.75);
  const left = text.length - characters;
  return `${text.slice(0, head)}\n[… ${left} characters left out …]\n${text.slice(head - characters)}`;
}

function capSettings({ settings }: AgentDefinition, { maxOutputTokens }: CallModelInput) {
  if (maxOutputTokens === undefined) return settings;
  const most = Math.min(maxOutputTokens, settings.maxOutputTokens ?? Infinity);
  return { ...settings, maxOutputTokens: most };
}

/**
 * Adds the function that reads blobs, if a message refers to one. The sender of a message chose its
 * attachments, so they must be attached in this run. All other references are from workers.
 */
function withFiles(
  request: ModelRequest,
  { run, blobs }: { readonly run: string; readonly blobs: BlobStore },
): ModelRequest {
  const { messages } = request;
  const hasReferences = messages.some((message) =>
    message.role === 'assistant' ? message.provider?.blob : message.attachments,
  );
  if (!hasReferences) return request;
  const attached = new Set(messages.flatMap(attachedHashes));
  const files = async (blob: BlobRef): Promise<string> =>
    attached.has(blob.sha256)
      ? await attachedText(blobs, run, blob).catch(throwModelError)
      : await blobs.get(blob);
  return { ...request, files };
}

function attachedHashes(message: PromptMessage): readonly string[] {
  if (message.role !== 'user') return [];
  return (message.attachments ?? []).flatMap((each) => ('blob' in each ? each.blob.sha256 : []));
}

function throwModelError(error: unknown): never {
  if (!(error instanceof NotAttachedError)) throw error;
  throw new ModelError(error.message, { kind: 'request', type: 'bad_attachment', cause: error });
}
