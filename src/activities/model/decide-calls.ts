import type { Context } from '@temporalio/activity';
import type { DecideModel } from '../../agents/agent.js';
import type {
  Budget,
  BudgetName,
  ModelPrice,
  ModelSettings,
  ToolChoice,
} from '../../core/definition/definition.js';
import { reserveWithin } from '../../core/rules/limits.js';
import { toUsage } from '../../core/rules/spending.js';
import { type JsonObject, canonicalJson, isObject, sha256Hex } from '../../core/text/json.js';
import {
  amount,
  fields,
  jsonObject,
  list,
  oneOf,
  optional,
  shape,
  tagged,
  text,
} from '../../core/text/shape.js';
import { jsonText, show } from '../../core/text/text.js';
import { attachmentShape } from '../../core/transcript/message-shapes.js';
import type { Attachment } from '../../core/transcript/messages.js';
import type { ReplyUsage, Usage } from '../../core/transcript/outcome.js';
import {
  type EmitDelta,
  ModelError,
  type ModelReply,
  type ModelRequest,
  type ModelTool,
  type ResponseSchema,
  estimateUsage,
} from '../../models/model.js';
import type { BlobStore } from '../../storage/blob-store.js';
import {
  type AttemptMemory,
  type DecideReply,
  handOver,
  noteDecideCall,
  readPaidReply,
  spentBy,
  sumOf,
  toPaidReply,
} from './attempt-memory.js';

/** The required fields of a request's message. */
type DecideMessage =
  | { readonly role: 'user'; readonly text: string; readonly attachments?: readonly Attachment[] }
  | { readonly role: 'assistant'; readonly text: string; readonly calls?: readonly DecideCall[] }
  | { readonly role: 'tool'; readonly text: string; readonly callId: string };

interface DecideCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

type DecideSettings = Pick<ModelSettings, 'temperature' | 'maxOutputTokens'>;

const positive = shape<number>(
  'a whole number from 1',
  (value) => Number.isSafeInteger(value) && Number(value) >= 1,
);
const messageShape = tagged<DecideMessage, 'role'>('role', {
  user: fields<Extract<DecideMessage, { role: 'user' }>>({
    role: oneOf('user'),
    text,
    attachments: optional(list(attachmentShape)),
  }),
  assistant: fields<Extract<DecideMessage, { role: 'assistant' }>>({
    role: oneOf('assistant'),
    text,
    calls: optional(list(fields<DecideCall>({ id: text, name: text, arguments: text }))),
  }),
  tool: fields<Extract<DecideMessage, { role: 'tool' }>>({
    role: oneOf('tool'),
    text,
    callId: text,
  }),
});

/**
 * The request fields that a decision function may set. Other fields of their parts are sent to the
 * provider unchecked.
 */
const FIELDS: Readonly<Record<string, (value: unknown, at: string) => string | null>> = {
  instructions: text,
  messages: list(messageShape),
  tools: list(fields<ModelTool>({ name: text, description: text, parameters: jsonObject })),
  toolChoice: oneOf<ToolChoice>('auto', 'required', 'none'),
  settings: fields<DecideSettings>({
    temperature: optional(amount),
    maxOutputTokens: optional(positive),
  }),
  responseFormat: fields<ResponseSchema>({
    name: text,
    schema: jsonObject,
    instruction: optional(text),
  }),
};

/** A request of a decision function. */
interface DecideRequested {
  readonly request: ModelRequest;
  /** SHA-256 of the function's request. It does not depend on the remaining budget. */
  readonly digest: string;
}

/**
 * Returns the step's own request with the fields set by a decision function. Throws an `Error` for
 * an unknown field and for a value that does not fit its field.
 */
function composeDecideRequest(own: ModelRequest, given: unknown): DecideRequested {
  const problem = requestProblem(given);
  if (problem !== null) throw new Error(`model.call: ${problem}`);
  // The function may change its objects while the call is under way.
  const set = Object.entries(isObject(given) ? structuredClone(given) : {}).filter(
    ([, value]) => value !== undefined,
  );
  const request: ModelRequest = { ...own, ...Object.fromEntries(set) };
  const { maxOutputTokens: most, ...settings } = own.settings;
  const isOwn = request.settings === own.settings;
  return {
    request: isOwn ? request : capped(request, most),
    digest: requestDigest(isOwn ? { ...request, settings } : request),
  };
}

/** Returns the request with at most this many output tokens; undefined: its own number. */
function capped(request: ModelRequest, most: number | undefined): ModelRequest {
  const { maxOutputTokens = most } = request.settings;
  if (most === undefined || maxOutputTokens === undefined) return request;
  const least = Math.min(most, maxOutputTokens);
  return { ...request, settings: { ...request.settings, maxOutputTokens: least } };
}

function requestProblem(given: unknown): string | null {
  if (!isObject(given)) return `expected an object of a request's fields, got ${show(given)}`;
  const known = Object.keys(FIELDS);
  for (const [key, value] of Object.entries(given)) {
    const fits = FIELDS[key];
    if (fits === undefined) return `${key}: expected one of ${known.join(', ')}`;
    const problem = value === undefined ? null : fits(value, key);
    if (problem !== null) return problem;
    if (value !== undefined && jsonText(value) === undefined) {
      return `${key}: expected JSON, got a value that has none, such as a bigint or a circle`;
    }
  }
  return null;
}

/** Returns the SHA-256 of a request's fields, without its model. */
export function requestDigest(request: ModelRequest): string {
  const { instructions, messages, tools, toolChoice, settings, responseFormat } = request;
  const sent = { instructions, messages, tools, toolChoice, settings, responseFormat };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- requests are sent as JSON
  return sha256Hex(canonicalJson(JSON.parse(JSON.stringify(sent)) as JsonObject));
}

/** Maximum model calls of one function, because the replies are remembered for another attempt. */
const MAX_CALLS = 32;
/**
 * Maximum bytes of an inline reply. A larger one is offloaded, because up to `MAX_CALLS` of them
 * are remembered.
 */
const INLINE_BYTES = 2 * 1024;

/**
 * A function has no budget for another model call; a turn that ends by this error has reached the
 * limit.
 */
export class BudgetError extends ModelError {
  readonly limit: BudgetName;

  constructor(limit: BudgetName, { name, what }: CallWords) {
    const message = `${name}: the limit "${limit}" allows no further call in this ${what}; answer with what you have, or let this error end the turn at its limit`;
    super(message, { kind: 'request', type: 'limit' });
    this.limit = limit;
  }
}

type OpenCall = Pick<DecideReply, 'digest' | 'usage' | 'costUsd'>;

/** How errors name the function's model calls. */
interface CallWords {
  readonly name: 'model.call' | 'context.generate';
  readonly what: 'decision' | 'node';
}

/** Options for the model calls of a function. */
export interface DecideCallOptions {
  readonly blobs: BlobStore;
  readonly context: Context;
  readonly words: CallWords;
  /** Calls the model of a request once; its replies have no secrets. */
  readonly call: (
    request: ModelRequest,
    signal: AbortSignal,
    onDelta?: EmitDelta,
  ) => Promise<ModelReply>;
  readonly memory: AttemptMemory;
  /** Returns the price of the model that a request names. */
  readonly priceOf: (request: ModelRequest) => ModelPrice | null;
  /** Returns the remaining budget of turn and run; undefined if nothing limits the calls. */
  readonly left: () => Promise<Budget | undefined>;
  /** The run has already reserved the budget for the first call. */
  readonly hasReserved: boolean;
}

/** The calls of one attempt. Several decisions share them if classes are sampled concurrently. */
interface Shared extends DecideCallOptions {
  /** Replies of earlier attempts. Two equal requests of a decision are two calls. */
  readonly unused: DecideReply[];
  /** The minimum usage of the calls under way. */
  readonly underWay: Map<symbol, Usage>;
  count: number;
}

/** The model of one decision. */
export interface DecideCalls {
  readonly model: DecideModel;
  /**
   * Returns the reply to a whole request: that of an earlier attempt, or of a model call. `digest`
   * identifies the request, and `onDelta` gets the deltas of a model call.
   */
  readonly reply: (
    request: ModelRequest,
    digest: string,
    onDelta?: EmitDelta,
  ) => Promise<ModelReply>;
  /**
   * Ends the calls under way. They count with an estimate of their prompts, which the provider has
   * received.
   */
  readonly cutOff: () => void;
  /**
   * Resolves when no call is under way, because the replies are paid for and another attempt needs
   * them.
   */
  readonly idle: () => Promise<void>;
}

/** Opens the model for the decisions of one attempt. */
export function openDecideCalls(
  options: DecideCallOptions,
): (own: ModelRequest, signal: AbortSignal) => DecideCalls {
  const unused = options.memory.decideReplies.filter(
    ({ reply, blob }) => (reply ?? blob) !== undefined,
  );
  const shared: Shared = { ...options, unused, underWay: new Map(), count: 0 };
  return (own, signal) => openDecision(shared, own, signal);
}

function openDecision(shared: Shared, own: ModelRequest, signal: AbortSignal): DecideCalls {
  const pending = new Set<Promise<unknown>>();
  const open = new Map<symbol, OpenCall>();
  const cut = new AbortController();
  const over = (id: symbol): void => {
    open.delete(id);
    shared.underWay.delete(id);
  };
  const cutOff = (): void => {
    signal.removeEventListener('abort', cutOff);
    if (cut.signal.aborted) return;
    cut.abort(signal.aborted ? signal.reason : new Error('the decision has been made'));
    for (const [id, call] of open) {
      noteDecideCall(shared.memory, call);
      over(id);
    }
  };
  if (signal.aborted) cutOff();
  else signal.addEventListener('abort', cutOff, { once: true });

  const requestReply: DecideCalls['reply'] = async (request, digest, onDelta) => {
    const id = Symbol(digest);
    const usage = { ...estimateUsage(request, NO_REPLY), estimated: true } as const;
    const price = shared.priceOf(request);
    const least = toUsage(usage, price);
    open.set(id, { digest, usage, costUsd: least.costUsd });
    shared.underWay.set(id, least);
    try {
      const reply = await shared.call(request, cut.signal, onDelta);
      cut.signal.throwIfAborted();
      over(id);
      const paid = usageOf(reply, request);
      const { costUsd } = toUsage(paid, price);
      await keep(shared, { digest, usage: paid, costUsd }, reply);
      return reply;
    } finally {
      over(id);
    }
  };
  const replyTo: DecideCalls['reply'] = async (request, digest, onDelta) => {
    shared.count += 1;
    if (shared.count > MAX_CALLS) {
      const { name, what } = shared.words;
      throw new Error(`${name}: expected at most ${MAX_CALLS} calls in a ${what}`);
    }
    const isFirst = shared.count === 1 && shared.memory.decideReplies.length === 0;
    const known = shared.unused.findIndex((one) => one.digest === digest);
    const [found] = known < 0 ? [] : shared.unused.splice(known, 1);
    if (found !== undefined) return await readPaidReply(found, shared.blobs);
    if (isFirst && shared.hasReserved) return await requestReply(request, digest, onDelta);
    return await requestReply(await withinBudget(shared, request), digest, onDelta);
  };
  const answer = async (requested: unknown): ReturnType<DecideModel['call']> => {
    cut.signal.throwIfAborted();
    const { request, digest } = composeDecideRequest(own, requested);
    const { text: written, calls, finish, usage } = await replyTo(request, digest);
    return { text: written, calls, finish, ...(usage && { usage }) };
  };
  const noted = <Reply>(replying: Promise<Reply>): Promise<Reply> => {
    pending.add(replying);
    // A function may ignore the result of a call.
    replying.catch(() => undefined).finally(() => pending.delete(replying));
    return replying;
  };

  return {
    cutOff,
    idle: async () => {
      await Promise.allSettled(pending);
      cutOff();
    },
    model: {
      name: own.model,
      call: (requested = {}) => noted(answer(requested)),
    },
    reply: (request, digest, onDelta) => noted(replyTo(request, digest, onDelta)),
  };
}

/**
 * Returns the request with as many output tokens as the budget allows. Throws a `BudgetError` if it
 * allows none.
 */
async function withinBudget(
  { left: getLeft, memory, priceOf, underWay, words }: Shared,
  request: ModelRequest,
): Promise<ModelRequest> {
  const left = await getLeft();
  if (left === undefined) return request;
  const price = priceOf(request);
  const { refusedBy, maxOutputTokens } = reserveWithin(left, {
    usage: [...underWay.values()].reduce(sumOf, spentBy(memory, price)),
    input: estimateUsage(request, NO_REPLY).inputTokens,
    price,
    wanted: request.settings.maxOutputTokens ?? Infinity,
  });
  if (refusedBy !== null) throw new BudgetError(refusedBy, words);
  return capped(request, maxOutputTokens ?? undefined);
}

async function keep(
  { memory, blobs, context }: Shared,
  call: OpenCall,
  reply: ModelReply,
): Promise<void> {
  const takenBytes = Buffer.byteLength(JSON.stringify(memory.decideReplies));
  const add = noteDecideCall(memory, call);
  add(await toPaidReply(reply, { checks: 0, blobs, inlineBytes: INLINE_BYTES, takenBytes }));
  await handOver(context, memory);
}

const NO_REPLY: ModelReply = { text: '', calls: [], finish: 'stop' };

function usageOf(reply: ModelReply, request: ModelRequest): ReplyUsage {
  return reply.usage ?? { ...estimateUsage(request, reply), estimated: true };
}
