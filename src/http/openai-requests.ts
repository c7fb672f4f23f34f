import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { canonicalJson, isObject, sha256Hex } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { SuppliedMessage } from '../core/transcript/messages.js';
import { newRunId } from '../updates/start.js';
import { type Place, idPrefixOf, meantAgent, openRun, unseen } from './access.js';
import { viewOf } from './chats.js';
import { HttpError, withFix } from './errors.js';
import { type Caller, startFor } from './handlers.js';
import type { ClientTools } from './input-fields.js';
import type { CallOutput } from './openai-answers.js';
import { TOOL_FIELDS } from './openai-tools.js';
import { idOfOperation } from './starts.js';
import type { Principal } from './principals.js';
import { firstIssue } from '../validation/check-options.js';
import { likelyMeant } from '../validation/near-names.js';
import { requestIssue } from '../validation/request-issues.js';

const parts = z.array(
  z.looseObject({ type: z.enum(['text', 'input_text', 'output_text']), text: z.string() }),
);
const said = z.looseObject({
  type: z.literal('message').exactOptional(),
  role: z.enum(
    ['user', 'assistant'],
    'expected user or assistant; the instructions are those of the agent',
  ),
  content: z.union([z.string(), parts], 'expected text, or parts of text'),
});

/** What a client remembers of a call; only the run knows what was called. */
const called = z.looseObject({ type: z.enum(['function_call', 'reasoning']) });
const output = z.looseObject({
  type: z.literal('function_call_output'),
  call_id: z.string(),
  output: z.union([z.string(), parts], 'expected text, or parts of text'),
});
const chatOutput = z.looseObject({
  role: z.literal('tool'),
  tool_call_id: z.string(),
  content: z.union([z.string(), parts], 'expected text, or parts of text'),
});
/** A message of an assistant that calls tools has no text. */
const chatCalls = z.looseObject({
  role: z.literal('assistant'),
  content: z.union([z.string(), parts]).nullish(),
  tool_calls: z.array(z.unknown()).min(1),
});

const ignored = z.unknown().optional();

/** Fields that change nothing here, whatever their value: they file, count, or speed up a request. */
const WITHOUT_EFFECT = {
  include: ignored,
  metadata: ignored,
  parallel_tool_calls: ignored,
  prompt_cache_key: ignored,
  safety_identifier: ignored,
  service_tier: ignored,
  store: ignored,
  stream_options: ignored,
  truncation: ignored,
  user: ignored,
};

const common = {
  model: z.string().min(1),
  stream: z.boolean().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  ...TOOL_FIELDS,
  ...WITHOUT_EFFECT,
};

/**
 * Returns a schema that picks the one of a value by the value itself. Its faults name the field that is wrong;
 * those of a union are about the whole value.
 */
function picked<Schema extends z.ZodType>(
  pick: (value: unknown) => Schema,
): z.ZodType<z.output<Schema>> {
  return z.unknown().transform((value, context) => {
    const read = pick(value).safeParse(value, { error: requestIssue });
    if (read.success) return read.data;
    for (const issue of read.error.issues) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an issue of zod, with its input
      context.issues.push({ ...issue, input: value } as (typeof context.issues)[number]);
    }
    return z.NEVER;
  });
}

const ITEMS = {
  message: said,
  function_call_output: output,
  function_call: called,
  reasoning: called,
} as const;

const ofKnownType = z.looseObject({ type: z.enum(Object.keys(ITEMS)) });

const responseItems = z.array(
  picked<z.ZodType<Item>>((value) => {
    const type = isObject(value) ? value['type'] : undefined;
    if (type === undefined) return said;
    const known = Object.entries(ITEMS).find(([name]) => name === type)?.[1];
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it refuses every other type
    return known ?? (ofKnownType as unknown as z.ZodType<Item>);
  }),
  'expected text, or a list of messages and results of calls',
);

/** The body of `POST /v1/responses`. */
export const responseBody = z.strictObject({
  ...common,
  input: picked((value) => (typeof value === 'string' ? z.string() : responseItems)),
  background: z.boolean().nullish(),
  previous_response_id: z.string().nullish(),
  conversation: z
    .union(
      [z.string(), z.looseObject({ id: z.string() })],
      'expected an id such as conv_x, or {"id": "conv_x"}',
    )
    .nullish(),
});

export type ResponseBody = z.output<typeof responseBody>;

const chatItem = picked((value) => {
  const role = isObject(value) ? value['role'] : undefined;
  const calls = role === 'assistant' && isObject(value) && value['tool_calls'] != null;
  return role === 'tool' ? chatOutput : calls ? chatCalls : said;
});

/** The body of `POST /v1/chat/completions`. */
export const chatBody = z.strictObject({ ...common, messages: z.array(chatItem).min(1) });

export type ChatBody = z.output<typeof chatBody>;

type Said = z.output<typeof said>;
type Item = Said | z.output<typeof output> | z.output<typeof called>;
type ChatItem = Said | z.output<typeof chatOutput> | z.output<typeof chatCalls>;

/** What a request says: the results of calls that the client has executed, or messages. */
export interface Spoken {
  readonly messages: readonly SuppliedMessage[];
  /** The results at the end of what is said; empty if a message is the last. */
  readonly outputs: readonly CallOutput[];
  /** Whether there are results before the last message. */
  readonly hasEarlier: boolean;
}

/** What to do about an input without a text. */
export const SAY = 'send what the user says as `input`';

/** Reads the input of a response. */
export function spokenIn(input: string | readonly Item[]): Spoken {
  if (typeof input === 'string') {
    if (input.trim() === '')
      throw new InputError(`input: expected text, got ${show(input)}; ${SAY}`);
    return spoken([{ role: 'user', content: input }]);
  }
  return spoken(
    input.map((item, at) => {
      if (!('type' in item) || item.type === undefined || item.type === 'message') {
        if (textOf(item['content']).trim() !== '') return item;
        // A client that sends a conversation again sends replies without a text, too.
        if (item['role'] === 'assistant') return null;
        throw new InputError(
          `input[${at}].content: expected text, got ${show(item['content'])}; ${SAY}`,
        );
      }
      if (item.type !== 'function_call_output') return null;
      return { callId: item['call_id'], output: textOf(item['output']) };
    }),
  );
}

/** Reads the messages of a chat completion. */
export function spokenInChat(messages: readonly ChatItem[]): Spoken {
  return spoken(
    messages.map((item) => {
      if (item.role === 'tool') {
        return { callId: item['tool_call_id'], output: textOf(item.content) };
      }
      // A call without a text is what the run knows already.
      return item.content == null || textOf(item.content) === '' ? null : item;
    }),
  );
}

/** What to send, by the kind of the request. */
const FORMS = {
  response: '{ "model": "AGENT", "input": "TEXT" }',
  chat: '{ "model": "AGENT", "messages": [{ "role": "user", "content": "TEXT" }] }',
} as const;

/** Reads a body. Throws an `InputError` that names the first fault, with a body that is accepted. */
export function readOpenAi<Body extends z.ZodObject>(
  schema: Body,
  body: unknown,
  form: keyof typeof FORMS,
): z.output<Body> {
  const read = schema.safeParse(body, { error: requestIssue });
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  if (issue?.code === 'unrecognized_keys' && issue.path.length === 0) {
    const [key = ''] = issue.keys;
    const meant = likelyMeant(key, Object.keys(schema.shape));
    throw new InputError(
      meant === undefined
        ? `${key}: not supported: the model and the instructions are those of the agent; omit it`
        : `${key}: not supported here; did you mean ${meant}?`,
    );
  }
  const text = firstIssue(read.error.issues, body);
  const place = issue?.path[0];
  // The form shows what is needed, and not the other fields.
  const isInForm = place === undefined || FORMS[form].includes(`"${String(place)}"`);
  const lacksFix = isInForm && withFix(text).fix === null;
  throw new InputError(lacksFix ? `${text}; send ${FORMS[form]}` : text);
}

type Spoke = { readonly role: 'user' | 'assistant'; readonly content?: unknown };

/** What it says of an assistant counts as said by the sender. */
function spoken(items: readonly (Spoke | CallOutput | null)[]): Spoken {
  const known = items.filter((item) => item !== null);
  const last = known.findLastIndex((item) => 'role' in item);
  const outputs = known.filter((item) => 'callId' in item);
  const trailing = known.slice(last + 1).filter((item) => 'callId' in item);
  return {
    messages: known.flatMap((item) =>
      'role' in item ? [{ role: item.role, text: textOf(item.content) }] : [],
    ),
    outputs: trailing,
    hasEarlier: outputs.length > trailing.length,
  };
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  const read = parts.safeParse(content);
  return (read.data ?? []).map(({ text }) => text).join('\n');
}

interface Sampling {
  readonly temperature?: number | null | undefined;
  readonly top_p?: number | null | undefined;
}

function settingsOf({ temperature, top_p: topP }: Sampling) {
  const settings = {
    ...(temperature != null && { temperature }),
    ...(topP != null && { top_p: topP }),
  };
  return Object.keys(settings).length === 0 ? {} : { settings };
}

const HASH_DIGITS = 16;
/** How long a client may take to send a request again. */
const RETRIED_WITHIN = '10m';
const RETRIED_WITHIN_MS = 600_000;

/** Whether the client says that it sends a request again, as those of OpenAI do. */
export function isRetry(retries: string | undefined): boolean {
  return /^[1-9]\d{0,3}$/.test(retries ?? '');
}

const starts = new WeakMap<Place, LRUCache<string, string>>();
const MAX_RECENT = 10_000;

/** Returns the newest runs and messages that this process has begun to send, by the content of their requests. */
function recentStarts(place: Place): LRUCache<string, string> {
  const known = starts.get(place);
  if (known !== undefined) return known;
  const cache = new LRUCache<string, string>({ max: MAX_RECENT, ttl: RETRIED_WITHIN_MS });
  starts.set(place, cache);
  return cache;
}

/**
 * Starts a run for a request without an id. A request with an idempotency key finds the run of its first
 * try by the key. Clients of OpenAI send none, so a request that they send again finds it by its content.
 */
export async function startOnce(
  place: Place,
  caller: Caller,
  given: {
    readonly model: string;
    readonly messages: readonly SuppliedMessage[];
    readonly open: boolean;
    readonly isRetry: boolean;
    readonly sampling: Sampling;
    readonly clientTools: ClientTools;
  },
): Promise<string> {
  const { model, messages, open, sampling, clientTools } = given;
  const { principal } = caller;
  const isKnown = place.agents.length === 0 || place.agents.some(({ name }) => name === model);
  if (!isKnown || !principal.may('start', { agent: model })) {
    throw noModel(place, principal, model);
  }
  const [only] = messages;
  const text = messages.length === 1 && only ? { message: only.text } : { messages: [...messages] };
  const tools = clientTools.length > 0 && { clientTools };
  const fields = {
    agent: model,
    ...text,
    ...settingsOf(sampling),
    ...(open && { open }),
    ...tools,
  };
  if (caller.operationKey !== null) return (await startFor(place, caller, fields)).id;
  const sent = messages.map((one) => ({ ...one }));
  const added = tools === false ? [] : [JSON.stringify(tools)];
  const content = canonicalJson([principal.name, model, sent, open, ...added]);
  const idPrefix = `${idPrefixOf(place, caller)}ai-${sha256Hex(content).slice(0, HASH_DIGITS)}-`;
  const recent = recentStarts(place);
  const tried = given.isRetry ? recent.get(idPrefix) : undefined;
  // The list shows a run a moment after its start, so a quick retry would miss it there.
  if (given.isRetry && tried === undefined) {
    const { rows } = await place.api.list({ idPrefix, since: RETRIED_WITHIN, limit: 10 });
    for (const { id: run } of rows) {
      // Others can choose an id that begins in the same way.
      const seen = await openRun(place, { principal, right: 'read', run }).catch(unseen);
      if (seen?.isOwn) return run;
    }
  }
  const id = tried ?? idPrefix + newRunId('').slice(-6);
  recent.set(idPrefix, id);
  return (await startFor(place, caller, { ...fields, id })).id;
}

/**
 * Returns the id of a message after a response: that of its idempotency key. Without one, the same words
 * after the same response are the same message.
 */
export function nextMessageId(
  { principal, operationKey }: Caller,
  given: { readonly previous: string; readonly messages: readonly SuppliedMessage[] },
): string {
  if (operationKey !== null) return idOfOperation(principal, operationKey);
  const messages = given.messages.map((one) => ({ ...one }));
  return sha256Hex(canonicalJson([principal.name, given.previous, messages])).slice(0, 32);
}

/**
 * Returns the id of a message of a conversation: that of its idempotency key. Without one, the same words
 * are another message, unless the client says that it sends them again: then, they are the newest message
 * with the same words of this principal, if it came within ten minutes.
 */
export async function messageId(
  place: Place,
  { principal, operationKey }: Caller,
  given: {
    readonly run: string;
    readonly messages: readonly SuppliedMessage[];
    readonly isRetry: boolean;
  },
): Promise<string> {
  if (operationKey !== null) return idOfOperation(principal, operationKey);
  const { run, messages, isRetry: again } = given;
  const content = canonicalJson([principal.name, messages.map((one) => ({ ...one }))]);
  const prefix = `${sha256Hex(content).slice(0, HASH_DIGITS)}-`;
  const recent = recentStarts(place);
  const key = `${run} ${prefix}`;
  const known = again ? (recent.get(key) ?? (await newestMessage(place, run, prefix))) : null;
  const id = known ?? prefix + randomUUID();
  recent.set(key, id);
  return id;
}

/** Returns the newest message of a run whose id begins so, if it is not too old to be sent again. */
async function newestMessage(place: Place, run: string, prefix: string): Promise<string | null> {
  const { state } = await viewOf(place, run);
  const [id, turn] = state?.inbox.seen.findLast(([one]) => one.startsWith(prefix)) ?? [];
  if (id === undefined) return null;
  const { messages } = await place.api.transcript(run);
  const at = messages.findLast((one) => one.turn === turn && one.role === 'user')?.at;
  return at === undefined || Date.now() - at < RETRIED_WITHIN_MS ? id : null;
}

/** Returns the refusal of a model that is no agent of the principal, in the words of OpenAI. */
export function noModel(
  place: Pick<Place, 'agents'>,
  principal: Principal,
  model: string,
): HttpError {
  return new HttpError(404, 'model_not_found', `model: there is no agent ${show(model)}`, {
    fix: `${meantAgent(place, principal, model)}GET /v1/models lists the agents`,
  });
}
