import {
  sha256Hex,
  isObject,
  parseJson,
  quoteLargeIntegers,
  type Json,
  type JsonObject,
  isRecord,
} from '../../core/text/json.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import type { ModelReply, ModelRequest, ModelTool } from '../model.js';
import type { SentParameter } from './refusals.js';

/** A request in the form that its server takes, and the way back from the reply. */
interface AdaptedRequest {
  readonly request: ModelRequest;
  /** The names of tools whose properties have other names in the request. */
  readonly renamed: ReadonlySet<string>;
  /** Returns the reply with the property names that the tools' authors wrote. */
  readonly restore: (reply: ModelReply) => ModelReply;
}

/**
 * Adapts call ids and property names to the server. The same id and the same name always become the
 * same text, so a longer conversation begins with the bytes of a shorter one.
 */
export function adaptRequest(
  request: ModelRequest,
  { propertyNames }: { readonly propertyNames: RegExp | undefined },
): AdaptedRequest {
  const { without = [] } = request;
  const toId = without.includes('call_ids:own') ? toShortId : toSafeId;
  const pattern = without.includes('property_names:own') ? PLAIN_NAME : propertyNames;
  const names = pattern === undefined ? new Map<string, Renaming>() : rename(request, pattern);
  const messages = request.messages.map((message) => {
    if (message.role === 'tool') {
      const callId = toId(message.callId);
      return callId === message.callId ? message : { ...message, callId };
    }
    if (message.role !== 'assistant' || message.calls === undefined) return message;
    return { ...message, calls: message.calls.map((call) => adaptCall(call, { toId, names })) };
  });
  const tools = request.tools.map((tool) => {
    const renaming = names.get(tool.name);
    return renaming === undefined ? tool : { ...tool, parameters: renaming.parameters };
  });
  return {
    request: { ...request, messages, tools },
    renamed: new Set(names.keys()),
    restore: (reply) => restoreReply(reply, names),
  };
}

/** Lists the parts of a request that `adaptRequest` can write in another form. */
export function listAdaptable(
  { messages, tools, without = [] }: ModelRequest,
  { propertyNames = ANY_NAME }: { readonly propertyNames: RegExp | undefined },
): readonly SentParameter[] {
  const hasCalls = messages.some(({ role }) => role === 'tool');
  const sent: readonly (SentParameter | false)[] = [
    hasCalls && CALL_IDS,
    tools.some(({ parameters }) =>
      listNames(parameters).some((name) => propertyNames.test(name) && !PLAIN_NAME.test(name)),
    ) && PROPERTY_NAMES,
  ];
  return sent
    .filter((one) => one !== false)
    .filter(({ parameter }) => !without.includes(parameter));
}

const CALL_ID =
  '(?:(?:tool|function|tool_calls?)[ _.]?(?:call|use|calls)?[\\w\\[\\].]{0,12}[ _.]?id|\\bcall_id|toolUseId)s?\\b';
const WRONG_FORM = 'must|should|invalid|too long|length|pattern|match|malformed|format|characters';

const CALL_IDS: SentParameter = {
  parameter: 'call_ids:own',
  param: /\bid$|call_id|tool_use_id|toolUseId/,
  names: CALL_ID,
  also: new RegExp(
    `${CALL_ID}.{0,80}\\b(?:${WRONG_FORM})|(?:invalid|bad|malformed) ${CALL_ID}`,
    'i',
  ),
};

const PROPERTY_NAMES: SentParameter = {
  parameter: 'property_names:own',
  param: /^tools|parameters|input_schema|properties/,
  names: 'propert(?:y|ies)',
  also: new RegExp(
    `\\bpropert(?:y|ies)\\b.{0,80}(?:${WRONG_FORM})|(?:${WRONG_FORM}).{0,80}\\bpropert(?:y|ies)\\b`,
    'i',
  ),
};

/** The ids that servers take, apart from those that want exactly nine letters and digits. */
const SAFE_ID = /^[\w-]{1,40}$/;

function toSafeId(id: string): string {
  return SAFE_ID.test(id) ? id : `call_${sha256Hex(id).slice(0, 24)}`;
}

/** Returns nine letters and digits, the only form that Mistral's models take. */
function toShortId(id: string): string {
  return BigInt(`0x${sha256Hex(id).slice(0, 16)}`)
    .toString(36)
    .padStart(9, '0')
    .slice(-9);
}

function adaptCall(
  call: ToolCall,
  {
    toId,
    names,
  }: { readonly toId: (id: string) => string; readonly names: ReadonlyMap<string, Renaming> },
): ToolCall {
  const renaming = names.get(call.name);
  const id = toId(call.id);
  if (renaming === undefined) return id === call.id ? call : { ...call, id };
  return { ...call, id, arguments: renameArguments(call.arguments, renaming.toWire) };
}

/** Names that every server takes. */
const PLAIN_NAME = /^[a-zA-Z_]\w{0,63}$/;
const ANY_NAME = /[^]*/;

/** The properties of one tool that have other names in the request. */
interface Renaming {
  readonly parameters: JsonObject;
  readonly toWire: ReadonlyMap<string, string>;
  readonly toOwn: ReadonlyMap<string, string>;
}

/** Returns the renamed tools by name: those with a property whose name does not match. */
function rename({ tools }: ModelRequest, pattern: RegExp): ReadonlyMap<string, Renaming> {
  return new Map(
    tools.flatMap((tool) => {
      const renaming = renameProperties(tool, pattern);
      return renaming === null ? [] : [[tool.name, renaming] as const];
    }),
  );
}

function renameProperties({ parameters }: ModelTool, pattern: RegExp): Renaming | null {
  const names = [...new Set(listNames(parameters))];
  const toWire = new Map<string, string>();
  for (const name of names.filter((one) => !pattern.test(one))) toWire.set(name, toWireName(name));
  if (toWire.size === 0) return null;
  const toOwn = new Map([...toWire].map(([own, wire]) => [wire, own]));
  const renamed = renameInSchema(parameters, toWire, 0);
  return { parameters: isRecord(renamed) ? renamed : parameters, toWire, toOwn };
}

/** Returns a plain name that depends on the name alone, with a part of its digest. */
function toWireName(name: string): string {
  const readable = name.replaceAll(/\W+/g, '_').replace(/^_|_$/g, '').slice(0, 40);
  return `${/^[a-zA-Z]/.test(readable) ? readable : `p${readable}`}_${sha256Hex(name).slice(0, 8)}`;
}

/** Levels of a schema that are searched; deeper ones stay as they are. */
const MAX_DEPTH = 64;
/** Keywords whose values are data, not schemas. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required', 'description', 'title']);

/** Lists the property names of a schema, at any level. */
function listNames(schema: unknown, depth = 0): readonly string[] {
  if (depth > MAX_DEPTH || typeof schema !== 'object' || schema === null) return [];
  if (Array.isArray(schema)) return schema.flatMap((one: unknown) => listNames(one, depth + 1));
  return Object.entries(schema).flatMap(([keyword, value]: [string, unknown]) => {
    if (DATA.has(keyword)) return [];
    if (!NAMED.has(keyword) || !isObject(value)) return listNames(value, depth + 1);
    const own = keyword === 'properties' ? Object.keys(value) : [];
    return [...own, ...Object.values(value).flatMap((one) => listNames(one, depth + 1))];
  });
}

/** Keywords whose values are schemas by name. */
const NAMED = new Set([
  'properties',
  '$defs',
  'definitions',
  'patternProperties',
  'dependentSchemas',
]);

function renameInSchema(schema: Json, names: ReadonlyMap<string, string>, depth: number): Json {
  if (depth > MAX_DEPTH || typeof schema !== 'object' || schema === null) return schema;
  if (!isRecord(schema)) return schema.map((one: Json) => renameInSchema(one, names, depth + 1));
  const entries = Object.entries(schema).map(([keyword, value = null]): [string, Json] => {
    if (keyword === 'required' && Array.isArray(value)) {
      return [
        keyword,
        value.map((one: Json) => (typeof one === 'string' ? toName(names, one) : one)),
      ];
    }
    if (DATA.has(keyword)) return [keyword, value];
    if (!NAMED.has(keyword) || !isRecord(value)) {
      return [keyword, renameInSchema(value, names, depth + 1)];
    }
    const inner = Object.entries(value).map(([name, one = null]): [string, Json] => {
      const renamed = renameInSchema(one, names, depth + 1);
      const wire = keyword === 'properties' ? names.get(name) : undefined;
      return wire === undefined ? [name, renamed] : [wire, describe(name, renamed)];
    });
    return [keyword, Object.fromEntries(inner)];
  });
  return Object.fromEntries(entries);
}

/** Adds a property's own name to its description, because texts about the tool use it. */
function describe(name: string, schema: Json): Json {
  if (!isRecord(schema)) return schema;
  const { description } = schema;
  const own = `Named ${JSON.stringify(name)}.`;
  return {
    ...schema,
    description: typeof description === 'string' ? `${own} ${description}` : own,
  };
}

function toName(names: ReadonlyMap<string, string>, name: string): string {
  return names.get(name) ?? name;
}

/**
 * Renames the keys of arguments at any level. Arguments that are no JSON stay as they are. Numbers
 * that a program would change become texts.
 */
function renameArguments(text: string, names: ReadonlyMap<string, string>): string {
  const value = parseJson(quoteLargeIntegers(text));
  if (!isObject(value)) return text;
  let isChanged = false;
  const renameKeys = (part: unknown, depth: number): unknown => {
    if (depth > MAX_DEPTH || typeof part !== 'object' || part === null) return part;
    if (Array.isArray(part)) return part.map((one: unknown) => renameKeys(one, depth + 1));
    const entries = Object.entries(part).map(([key, one]: [string, unknown]) => {
      const name = toName(names, key);
      isChanged ||= name !== key;
      return [name, renameKeys(one, depth + 1)] as const;
    });
    return Object.fromEntries(entries);
  };
  const renamed = renameKeys(value, 0);
  return isChanged ? JSON.stringify(renamed) : text;
}

function restoreReply(reply: ModelReply, names: ReadonlyMap<string, Renaming>): ModelReply {
  if (names.size === 0 || reply.calls.length === 0) return reply;
  const calls = reply.calls.map((call) => {
    const renaming = names.get(call.name);
    if (renaming === undefined) return call;
    return { ...call, arguments: renameArguments(call.arguments, renaming.toOwn) };
  });
  return { ...reply, calls };
}
