import { type JsonObject, isJsonObject, isObject } from '../../core/text/json.js';
import type { EmitDelta, FinishReason, ModelReply, ModelUsage } from '../model.js';
import type { ReplySource } from '../wire/api.js';
import { toArgumentsText, toCount, toText } from '../wire/content.js';
import { getRequestId, unusableAnswer } from '../wire/errors.js';
import { type CallWatch, createReplyMeter } from '../wire/reply-limits.js';

/** A result of any version, whole or assembled from a stream. */
export interface Result {
  readonly content: readonly unknown[];
  readonly finishReason: unknown;
  readonly usage: unknown;
  readonly warnings: unknown;
}

/** How a result is read. */
interface Reading {
  readonly source: ReplySource;
  /** The maker of the parts that go back. */
  readonly from: string;
  readonly streamed: boolean;
  /** The provider does not count the cached tokens as part of the prompt. */
  readonly isCacheBeside: boolean;
}

/** Reads a result as the model's reply. Throws only a `ModelError`, if it is unusable. */
export function readResult(
  result: Result,
  { source, from, streamed, isCacheBeside }: Reading,
): ModelReply {
  const content = result.content.filter(isObject);
  const text = content
    .map((part) => (part['type'] === 'text' ? toText(part['text']) : ''))
    .join('');
  const usage = readUsage(result.usage, isCacheBeside);
  const requestId = getRequestId(source.headers);
  const optional = {
    ...(usage !== undefined && { usage }),
    ...(requestId !== undefined && { requestId }),
  };
  const called = content.filter(isOwnCall);
  const finish = readFinish(result, { source, streamed, hasCalls: called.length > 0 });
  if (finish === 'filtered' || finish === 'refused')
    return { text, calls: [], finish, ...optional };
  const calls = called.map(({ toolName: name, input }) => {
    if (typeof name === 'string' && name !== '') return { name, arguments: toArgumentsText(input) };
    const what = 'requested a call without a name';
    const problem = { kind: 'malformed', type: 'bad_call', what } as const;
    throw unusableAnswer(source, { ...problem, text: toArgumentsText(input) });
  });
  if (finish === 'stop' && text === '' && source.mayBeEmpty !== true) {
    const what = 'answered with neither text nor calls';
    throw unusableAnswer(source, { kind: 'empty', type: 'empty_reply', what, text: '' });
  }
  const items = extractItems(content);
  return { text, calls, finish, ...(items && { provider: { from, items } }), ...optional };
}

/** Whether a part is a call for perdure to execute. */
function isOwnCall(part: Record<string, unknown>): boolean {
  return part['type'] === 'tool-call' && part['providerExecuted'] !== true;
}

/**
 * Reads why the model stopped: a text in version 2, an object since version 3. A stream without a
 * reason was cut off, since providers end it in the same way; a whole answer needs none.
 */
function readFinish(
  { finishReason }: Result,
  { source, streamed, hasCalls }: { source: ReplySource; streamed: boolean; hasCalls: boolean },
): FinishReason {
  const reason = isObject(finishReason) ? finishReason : { unified: finishReason };
  const { unified, raw } = reason;
  const isMissing =
    unified === undefined ||
    unified === 'unknown' ||
    (unified === 'other' && 'raw' in reason && raw === undefined);
  if (unified === 'error' || unified === 'interrupted' || (streamed && isMissing)) {
    const type = unified === 'error' ? 'provider' : 'incomplete';
    throw unusableAnswer(source, { type, what: 'sent an incomplete answer', text: toText(raw) });
  }
  // The provider's own reason shows a refusal by the model.
  if (unified === 'content-filter')
    return raw === 'refusal' || raw === 'stop' ? 'refused' : 'filtered';
  if (unified === 'length') return 'length';
  return hasCalls ? 'calls' : 'stop';
}

/** Reads the usage; returns undefined if it is missing or not in whole numbers. */
function readUsage(usage: unknown, isCacheBeside: boolean): ModelUsage | undefined {
  if (!isObject(usage)) return undefined;
  const { inputTokens: input, outputTokens: output } = usage;
  const counted = toCount(isObject(input) ? input['total'] : input);
  const outputTokens = toCount(isObject(output) ? output['total'] : output);
  if (counted === undefined || outputTokens === undefined) return undefined;
  const cached = toCount(isObject(input) ? input['cacheRead'] : usage['cachedInputTokens']) ?? 0;
  const inputTokens = isCacheBeside ? counted + cached : counted;
  const cachedTokens = Math.min(cached, inputTokens);
  const written = toCount(isObject(input) ? input['cacheWrite'] : undefined) ?? 0;
  const cacheWriteTokens = Math.min(written, inputTokens - cachedTokens);
  const reasoning = toCount(isObject(output) ? output['reasoning'] : usage['reasoningTokens']);
  return {
    inputTokens,
    outputTokens,
    cachedTokens,
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    ...(reasoning !== undefined && { reasoningTokens: Math.min(reasoning, outputTokens) }),
  };
}

/**
 * Returns what goes back to the provider: thoughts, its own calls and results, files, and the
 * metadata of texts and calls, in the order of the reply. `characters` of the text or one `call` mark
 * the places of the others. Returns undefined for a reply of plain texts and calls.
 */
function extractItems(
  content: readonly Record<string, unknown>[],
): readonly JsonObject[] | undefined {
  let calls = 0;
  let hasOpaque = false;
  const items = content.flatMap((part): readonly JsonObject[] => {
    const options = toOptions(part);
    hasOpaque ||= 'providerOptions' in options;
    if (part['type'] === 'text') return [{ characters: toText(part['text']).length, ...options }];
    if (isOwnCall(part)) {
      const id = 'providerOptions' in options && { id: toText(part['toolCallId']) };
      return [{ call: calls++, ...id, ...options }];
    }
    const kept = toPromptPart(part);
    hasOpaque ||= kept !== undefined;
    return kept === undefined ? [] : [{ part: { ...kept, ...options } }];
  });
  return hasOpaque ? items : undefined;
}

/** Returns the metadata of a part in the form in which a prompt gives it back. */
function toOptions({ providerMetadata: metadata }: Record<string, unknown>): JsonObject {
  const isGiven = isJsonObject(metadata) && Object.keys(metadata).length > 0;
  return isGiven ? { providerOptions: metadata } : {};
}

/** Returns a part other than a text or a call as a part of a prompt; undefined if it has no place there. */
function toPromptPart(part: Record<string, unknown>): JsonObject | undefined {
  const { providerMetadata: _, ...rest } = part;
  switch (part['type']) {
    case 'reasoning':
    case 'custom':
      return toJson(rest);
    case 'file':
    case 'reasoning-file':
      return toJson({ ...rest, data: toJsonData(rest['data']) });
    case 'tool-call': {
      const input: unknown = typeof part['input'] === 'string' ? parseInput(part['input']) : null;
      return toJson({ ...rest, input });
    }
    case 'tool-result': {
      const { result, isError, ...call } = rest;
      const type = isError === true ? 'error-json' : 'json';
      return toJson({ ...call, output: { type, value: result ?? null } });
    }
    // Sources and requests for an approval by the provider do not go back.
    default:
      return undefined;
  }
}

function parseInput(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Returns bytes as base64, which every version accepts. */
function toJsonData(data: unknown): unknown {
  if (data instanceof Uint8Array) return Buffer.from(data).toString('base64');
  if (isObject(data) && data['data'] instanceof Uint8Array) {
    return { ...data, data: Buffer.from(data['data']).toString('base64') };
  }
  return data;
}

function toJson(value: Record<string, unknown>): JsonObject | undefined {
  const copy: unknown = JSON.parse(JSON.stringify(value));
  return isJsonObject(copy) ? copy : undefined;
}

/** A part of a reply while it is streamed. */
interface OpenPart {
  readonly type: 'text' | 'reasoning' | 'tool-call';
  text: string;
  /** The place of a call among the calls. */
  readonly index?: number;
  part: Record<string, unknown>;
}

/** Assembles the parts of a stream into a result. */
interface Assembly {
  /** Adds one part of the stream. Throws for a part that reports an error. */
  add(part: unknown): void;
  /** The part that ends a stream has arrived. */
  isFinished(): boolean;
  result(): Result;
}

/** Creates an assembly; `fail` creates what is thrown for an error within the stream. */
export function createAssembly(
  emit: EmitDelta,
  watch: Pick<CallWatch, 'setThinking'>,
  fail: (error: unknown) => unknown,
): Assembly {
  const meter = createReplyMeter();
  const content: (OpenPart | Record<string, unknown>)[] = [];
  const open = new Map<string, OpenPart>();
  let calls = 0;
  let warnings: unknown;
  let finish: Record<string, unknown> | undefined;

  const begin = (key: string, type: OpenPart['type'], part: Record<string, unknown>): OpenPart => {
    meter.item();
    if (type === 'tool-call') meter.call();
    const one = { type, text: '', part, ...(type === 'tool-call' && { index: calls++ }) };
    content.push(one);
    open.set(key, one);
    const name = toText(part['toolName']);
    if (one.index !== undefined) emit({ kind: 'call', index: one.index, name, text: '' });
    return one;
  };
  const grow = (one: OpenPart | undefined, delta: string): void => {
    if (one === undefined || delta === '') return;
    meter.text(delta);
    one.text += delta;
    if (one.index !== undefined) emit({ kind: 'call', index: one.index, text: delta });
    else if (one.type !== 'tool-call') emit({ kind: one.type, text: delta });
  };
  /** Completes a call; a provider may have sent its arguments in parts, or not. */
  const complete = (part: Record<string, unknown>): void => {
    const key = `call ${toText(part['toolCallId'])}`;
    const one = open.get(key) ?? begin(key, 'tool-call', part);
    open.delete(key);
    const input = toArgumentsText(part['input']);
    if (input.startsWith(one.text)) grow(one, input.slice(one.text.length));
    one.part = { ...part, input };
  };

  return {
    add(part) {
      meter.event();
      if (!isObject(part)) return;
      const { type, id, delta, providerMetadata: metadata } = part;
      const [, kind = '', stage = ''] =
        /^(text|reasoning|tool-input)-(start|delta|end)$/.exec(toText(type)) ?? [];
      if (kind !== '') watch.setThinking(kind === 'reasoning');
      if (kind === 'tool-input') {
        const key = `call ${toText(id)}`;
        if (stage === 'start' && part['providerExecuted'] !== true) begin(key, 'tool-call', part);
        if (stage === 'delta') grow(open.get(key), toText(delta));
      } else if (kind === 'text' || kind === 'reasoning') {
        const key = `${kind} ${toText(id)}`;
        const one = stage === 'start' ? begin(key, kind, {}) : open.get(key);
        if (one === undefined) return;
        // The newest metadata counts: signatures arrive at the end.
        if (metadata !== undefined) one.part = { providerMetadata: metadata };
        grow(one, toText(delta));
        if (stage === 'end') open.delete(key);
      } else if (type === 'tool-call' && isOwnCall(part)) complete(part);
      else if (type === 'stream-start') warnings = part['warnings'];
      else if (type === 'finish') finish = part;
      else if (type === 'error') throw fail(part['error']);
      else if (typeof type === 'string' && !META.has(type)) {
        meter.item();
        content.push(part);
      }
    },
    isFinished: () => finish !== undefined,
    result: () => ({
      content: content.map(closePart),
      finishReason: finish?.['finishReason'],
      usage: finish?.['usage'],
      warnings,
    }),
  };
}

/** Parts of a stream that are no content. */
const META = new Set(['response-metadata', 'raw', 'ping']);

/** Returns a part as a whole answer has it. A call that was cut off has the arguments that arrived. */
function closePart(part: OpenPart | Record<string, unknown>): Record<string, unknown> {
  if (!isOpenPart(part)) return part;
  const { type, text } = part;
  if (type === 'tool-call') return { input: text, ...part.part, type };
  return { ...part.part, type, text };
}

function isOpenPart(part: OpenPart | Record<string, unknown>): part is OpenPart {
  return 'part' in part && isObject(part.part);
}
