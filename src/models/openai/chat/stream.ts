import { type JsonObject, isObject } from '../../../core/text/json.js';
import { type EmitDelta, ignoreDeltas } from '../../model.js';
import type { StreamAssembly } from '../../wire/api.js';
import { MAX_LOGPROBS, findUsage, joinText, toArgumentsText, toText } from '../../wire/content.js';
import { mergeDelta, pickOpaque } from '../../wire/opaque-fields.js';
import { type ReplyMeter, createReplyMeter } from '../../wire/reply-limits.js';
import {
  type StreamedArguments,
  isEmptyObject,
  joinArguments,
} from '../../wire/streamed-arguments.js';
import { CALL_FIELDS, FUNCTION_FIELDS, MESSAGE_FIELDS, isOpaquePart } from './provider-fields.js';

/** The calls of a streamed reply so far. */
interface CallAssembly {
  /** True once a call has begun. */
  hasCalls(): boolean;
  /** Adds one part of a call and emits it. Throws a `ReplyTooLargeError` beyond a limit. */
  add(value: unknown, choice?: number): void;
  /** Returns the calls of a choice as an unstreamed message has them. */
  list(choice?: number): readonly object[];
}

interface OpenCall {
  readonly place: number;
  readonly choice: number;
  readonly index: unknown;
  readonly id: unknown;
  name: string;
  readonly arguments: StreamedArguments;
  /** The fields that perdure does not know, and those of its `function`. */
  readonly opaque: { call: unknown; function: unknown };
}

interface Part {
  readonly index: unknown;
  readonly id: unknown;
  readonly name: string;
  readonly arguments: string;
  readonly opaque: { readonly call?: JsonObject; readonly function?: JsonObject };
}

/** Assembles the parts of streamed calls, in time proportional to their length. */
function assembleCalls(emit: EmitDelta, meter: ReplyMeter = createReplyMeter()): CallAssembly {
  const calls: OpenCall[] = [];
  const latestOf = new Map<number, LatestCalls>();

  const getLatest = (choice: number): LatestCalls => {
    const known = latestOf.get(choice) ?? createLatest();
    latestOf.set(choice, known);
    return known;
  };

  const begin = ({ index, id }: Part, choice: number): OpenCall => {
    meter.call();
    const call: OpenCall = {
      place: calls.length,
      choice,
      index,
      id,
      name: '',
      arguments: joinArguments(),
      opaque: { call: undefined, function: undefined },
    };
    calls.push(call);
    getLatest(choice).set(call);
    return call;
  };

  return {
    hasCalls: () => calls.length > 0,
    add(value, choice = 0) {
      if (!isObject(value)) return;
      const part = readPart(value);
      const call = findCall(getLatest(choice), part) ?? begin(part, choice);
      const name = joinName(call, part.name);
      const { opaque } = part;
      meter.text(part.name, part.arguments, ...Object.values(opaque).map(toSize));
      call.opaque.call = mergeDelta(call.opaque.call, opaque.call);
      call.opaque.function = mergeDelta(call.opaque.function, opaque.function);
      call.name += name;
      const shown = call.arguments.add(part.arguments);
      if (name === '' && shown === '') return;
      emit({ kind: 'call', index: call.place, text: shown, ...(name !== '' && { name }) });
    },
    list: (choice = 0) =>
      calls
        .filter((call) => call.choice === choice)
        .map((call) => {
          const { text, unshown } = call.arguments.finish();
          if (unshown !== '') emit({ kind: 'call', index: call.place, text: unshown });
          return {
            ...(isObject(call.opaque.call) && call.opaque.call),
            id: call.id,
            function: {
              ...(isObject(call.opaque.function) && call.opaque.function),
              name: call.name,
              arguments: text,
            },
          };
        }),
  };
}

/**
 * Returns what a part adds to a call's name: servers send it once, in pieces, or again in each part.
 */
function joinName(call: OpenCall, name: string): string {
  if (call.name === '') return name;
  if (name.startsWith(call.name)) return name.slice(call.name.length);
  return call.arguments.text === '' ? name : '';
}

function readPart(value: Record<string, unknown>): Part {
  // Some servers omit the object around name and arguments.
  const requested = isObject(value['function']) ? value['function'] : value;
  const { arguments: given } = requested;
  const ofCall = pickOpaque(value, CALL_FIELDS);
  const ofFunction = requested === value ? undefined : pickOpaque(requested, FUNCTION_FIELDS);
  return {
    index: value['index'],
    id: value['id'],
    name: toText(requested['name']),
    arguments: isObject(given) ? JSON.stringify(given) : toText(given),
    opaque: { ...(ofCall && { call: ofCall }), ...(ofFunction && { function: ofFunction }) },
  };
}

/**
 * Returns the call to which a part belongs; undefined if it begins a new one. OpenAI numbers calls
 * by `index`; other servers omit it, send 0 for all calls, or number the parts of one call. A name
 * with a new id therefore begins a new call, as does a name with other arguments after a call with
 * complete arguments. A part without a name continues an existing call.
 */
function findCall(latest: LatestCalls, part: Part): OpenCall | undefined {
  if (part.name === '') {
    const numbered = typeof part.index === 'number' ? latest.byIndex(part.index) : undefined;
    return latest.byBoth(part.index, part.id) ?? numbered ?? latest.byId(part.id) ?? latest.any();
  }
  const call = findNamedCall(latest, part);
  if (call === undefined || !part.arguments.trimStart().startsWith('{')) return call;
  return call.arguments.isComplete() && !isRepeatedBy(call, part) ? undefined : call;
}

function findNamedCall(latest: LatestCalls, part: Part): OpenCall | undefined {
  const hasId = toText(part.id) !== '';
  const hasIndex = typeof part.index === 'number';
  const same = hasIndex ? latest.byBoth(part.index, part.id) : latest.byId(part.id);
  const previous = hasIndex ? latest.byIndex(part.index) : latest.any();
  if (same !== undefined || previous === undefined) return same;
  if (hasIndex) return hasId && toText(previous.id) !== '' ? undefined : previous;
  const isOpen =
    !previous.arguments.isComplete() && previous.arguments.text + part.arguments !== '';
  const isReal = isEmptyObject(previous.arguments.text) && !isEmptyObject(part.arguments);
  return !hasId && previous.name === part.name && (isOpen || isReal) ? previous : undefined;
}

/** Whether a part with a name has the complete arguments of a call again, or its real ones. */
function isRepeatedBy(call: OpenCall, part: Part): boolean {
  if (part.name !== call.name) return false;
  const hasId = toText(part.id) !== '' && part.id === call.id;
  if (hasId) return call.arguments.isRepeatedBy(part.arguments);
  const { text } = call.arguments;
  return text === part.arguments || isEmptyObject(text);
}

/** The latest call of each index, each id, and each pair of both. */
function createLatest() {
  const indexes = new Map<unknown, OpenCall>();
  const ids = new Map<unknown, OpenCall>();
  const pairs = new Map<unknown, Map<unknown, OpenCall>>();
  let latest: OpenCall | undefined;
  return {
    set(call: OpenCall): void {
      latest = call;
      indexes.set(call.index, call);
      ids.set(call.id, call);
      const idsOfIndex = pairs.get(call.index) ?? new Map<unknown, OpenCall>();
      pairs.set(call.index, idsOfIndex.set(call.id, call));
    },
    byIndex: (index: unknown) => indexes.get(index),
    byId: (id: unknown) => (toText(id) === '' ? undefined : ids.get(id)),
    byBoth: (index: unknown, id: unknown) =>
      toText(id) === '' ? undefined : pairs.get(index)?.get(id),
    any: () => latest,
  };
}

type LatestCalls = ReturnType<typeof createLatest>;

/** Returns a text of the size of opaque fields, for the meter; empty if there are none. */
function toSize(fields: JsonObject): string {
  return toArgumentsText(fields);
}

/** One choice of a streamed answer so far. */
interface OpenChoice {
  content: string;
  reasoning: string;
  refusal: string;
  /** The content as parts; those that are no text go back to the server. */
  readonly parts: unknown[];
  reason: unknown;
  /** The fields that perdure does not know. */
  opaque: unknown;
  readonly logprobs: unknown[];
}

/** Maximum choices of one answer; perdure asks for one, and some servers split it. */
const MAX_CHOICES = 16;

/** The fields of a delta that are read one by one. */
const DELTA_FIELDS: ReadonlySet<string> = new Set([...MESSAGE_FIELDS, 'reasoning_content']);

/** Assembles the chunks of a stream into the completion of an unstreamed reply. */
export function assembleCompletion(emit: EmitDelta = ignoreDeltas): StreamAssembly {
  const meter = createReplyMeter();
  const calls = assembleCalls(emit, meter);
  const choices = new Map<number, OpenChoice>();
  let usage: unknown;
  /** The choice whose text is shown. */
  let shown: OpenChoice | undefined;

  const getChoice = (index: number): OpenChoice | undefined => {
    const known = choices.get(index);
    if (known !== undefined || choices.size >= MAX_CHOICES) return known;
    const choice = openChoice();
    choices.set(index, choice);
    return choice;
  };

  const addToChoice = (value: Record<string, unknown>): void => {
    const index = typeof value['index'] === 'number' ? value['index'] : 0;
    const choice = getChoice(index);
    if (choice === undefined) return;
    const { thought, text, parts } = growChoice(choice, { value, meter });
    if (thought !== '') emit({ kind: 'reasoning', text: thought });
    if (text !== '') {
      shown ??= choice;
      if (shown === choice) emit({ kind: 'text', text });
    }
    for (const part of parts) calls.add(part, index);
  };

  const isAnyText = (): boolean =>
    [...choices.values()].some(({ content, refusal }) => content !== '' || refusal !== '');

  return {
    add(chunk) {
      meter.event();
      if (!isObject(chunk)) return;
      usage = findUsage(chunk) ?? usage;
      const values: readonly unknown[] = Array.isArray(chunk['choices']) ? chunk['choices'] : [];
      for (const value of values) if (isObject(value)) addToChoice(value);
    },
    // A choice without its reason may hold half a call.
    isFinished: () =>
      choices.size > 0 && [...choices.values()].every(({ reason }) => reason !== null),
    hasContent: () => isAnyText() || calls.hasCalls(),
    isThinking: () => !isAnyText() && !calls.hasCalls(),
    answer: () => ({
      choices: [...choices].map(([index, choice]) => ({
        index,
        finish_reason: choice.reason,
        ...(choice.logprobs.length > 0 && { logprobs: { content: choice.logprobs } }),
        message: {
          ...(isObject(choice.opaque) && choice.opaque),
          content: choice.parts.some(isOpaquePart) ? choice.parts : choice.content,
          refusal: choice.refusal,
          reasoning_content: choice.reasoning,
          tool_calls: calls.list(index),
        },
      })),
      usage,
    }),
  };
}

function openChoice(): OpenChoice {
  const texts = { content: '', reasoning: '', refusal: '' };
  return { ...texts, parts: [], reason: null, opaque: undefined, logprobs: [] };
}

/** Adds a chunk to its choice. Returns the new thought and text, and the parts of calls. */
function growChoice(
  choice: OpenChoice,
  { value, meter }: { readonly value: Record<string, unknown>; readonly meter: ReplyMeter },
) {
  if (isReason(value['finish_reason'])) choice.reason = value['finish_reason'];
  const tokens = isObject(value['logprobs']) ? value['logprobs']['content'] : undefined;
  if (Array.isArray(tokens) && choice.logprobs.length < MAX_LOGPROBS) {
    choice.logprobs.push(...tokens.slice(0, MAX_LOGPROBS));
  }
  const delta = isObject(value['delta']) ? value['delta'] : {};
  const reasoning = joinText(delta['reasoning_content']);
  const content = joinText(delta['content']);
  const refusal = joinText(delta['refusal']);
  const opaque = pickOpaque(delta, DELTA_FIELDS);
  const thoughtPart = joinThoughts(delta['content']);
  meter.text(reasoning, content, refusal, thoughtPart, opaque ? toArgumentsText(opaque) : '');
  choice.reasoning += reasoning;
  // Almost all servers send texts alone, and many deltas.
  if (Array.isArray(delta['content']) || choice.parts.length > 0) {
    if (choice.parts.length === 0) addParts(choice.parts, choice.content);
    addParts(choice.parts, delta['content']);
  }
  choice.content += content;
  choice.refusal += refusal;
  choice.opaque = mergeDelta(choice.opaque, opaque);
  const thought = reasoning || joinText(delta['reasoning']) || thoughtPart;
  return { thought, text: content + refusal, parts: listParts(delta) };
}

/** Adds the content of a delta to the parts of its choice: texts are joined, others merged. */
function addParts(parts: unknown[], content: unknown): void {
  const added: readonly unknown[] = Array.isArray(content) ? content : [content];
  for (const part of added) {
    const text = joinText([part]);
    const last = parts.at(-1);
    if (text === '') {
      if (isOpaquePart(part)) mergeDelta(parts, [part]);
    } else if (isObject(last) && typeof last['text'] === 'string') last['text'] += text;
    else parts.push({ type: 'text', text });
  }
}

/** Returns the thoughts in a content, as Mistral sends them. */
function joinThoughts(content: unknown): string {
  if (!Array.isArray(content)) return '';
  return content.map((part) => (isObject(part) ? joinText(part['thinking']) : '')).join('');
}

/**
 * Whether a value is a finish reason. While the answer continues, it is null, missing, empty, or,
 * on some servers, the word null.
 */
function isReason(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== 'null';
}

/**
 * Returns the parts of calls in a delta. TGI sends a single call instead of a list; old servers send
 * a `function_call`, of which a message has one.
 */
function listParts({ tool_calls: calls, function_call: old }: Record<string, unknown>) {
  const parts: readonly unknown[] = Array.isArray(calls) ? calls : [calls];
  const isOld = isObject(old) && !parts.some(isObject);
  return isOld ? [{ index: 0, function: old }] : parts;
}
