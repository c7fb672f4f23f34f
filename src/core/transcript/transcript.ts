import type { AgentDefinition } from '../definition/definition.js';
import { sha256Hex } from '../text/json.js';
import { TOKENS_PER_ATTACHMENT, estimateTokens } from '../text/text.js';
import { hasCatalog, shownTools } from './catalog.js';
import type {
  Attachment,
  BlobRef,
  Message,
  PromptMessage,
  ProviderItems,
  RefusedPart,
  SuppliedMessage,
  ToolCall,
  ToolMessage,
} from './messages.js';

/** An older part of the prompt: JSON lines of messages in the blob store. */
export interface PromptChunk {
  readonly blob: BlobRef;
  /** Number of messages in it. */
  readonly count: number;
}

/**
 * The messages of a run. The prompt consists of the messages in chunks, then `messages`.
 * Transcripts with equal `head` produce the same prompt byte for byte, so a worker can safely use a
 * cached prompt.
 */
export interface Transcript {
  /** Number of the next message: the number of all messages of the run. */
  readonly next: number;
  readonly chunks: readonly PromptChunk[];
  readonly messages: readonly Message[];
  /** The messages in `chunks` that a compaction keeps verbatim. */
  readonly keptAside: readonly Message[];
  /**
   * Messages of dropped side branches, and those that a graph refused, until they are archived;
   * never in the prompt.
   */
  readonly pruned?: readonly Message[];
  /**
   * Digest of the messages in `chunks`; absent if there are none, and in a run that an older version
   * has continued.
   */
  readonly chunksHead?: string;
  /** The last texts in `chunks`; only in a run of a graph with `historyTo`. */
  readonly latest?: readonly SuppliedMessage[];
  /**
   * Digest of all messages of the prompt. It does not cover the definition, which has its own hash.
   */
  readonly head: string;
  /** Estimated tokens of the whole prompt, instructions and tools included. */
  readonly tokens: number;
}

/** Returns a transcript without messages. */
export function emptyTranscript(definition: AgentDefinition): Transcript {
  return {
    next: 0,
    chunks: [],
    messages: [],
    keptAside: [],
    head: FIRST_LINK,
    tokens: fixedTokens(definition),
  };
}

/** Returns the estimated tokens of the instructions and tools that begin each prompt. */
export function fixedTokens(definition: AgentDefinition): number {
  const tools = hasCatalog(definition) ? shownTools(definition) : definition.tools;
  return estimateTokens(definition.instructions + JSON.stringify(tools));
}

/**
 * Returns the next link of the digest chain: 32 hex digits over the previous link and one message.
 * Whether a call failed is not part of it, because a provider reads only the text.
 */
export function chain(head: string, prompt: PromptMessage | null): string {
  return sha256Hex(`${head}\n${JSON.stringify(sentPart(prompt))}`).slice(0, 32);
}

function sentPart(prompt: PromptMessage | null): PromptMessage | null {
  if (prompt?.role !== 'tool' || prompt.ok === undefined) return prompt;
  const { ok: _, ...sent } = prompt;
  return sent;
}

/** Returns the transcript with one more message. */
export function append(transcript: Transcript, message: Message): Transcript {
  return {
    ...transcript,
    next: transcript.next + 1,
    messages: [...transcript.messages, message],
    head: chain(transcript.head, toPromptMessage(message)),
    tokens:
      transcript.tokens +
      messageTokens(message.refused === undefined ? message : toPromptMessage(message)),
  };
}

/** Returns the number of messages in the prompt. */
export function promptLength(transcript: Transcript): number {
  return chunkedLength(transcript) + transcript.messages.length;
}

/** Returns the number of messages in chunks. */
export function chunkedLength({ chunks }: Pick<Transcript, 'chunks'>): number {
  return chunks.reduce((sum, { count }) => sum + count, 0);
}

/** Returns the estimated tokens of one message. */
export function messageTokens(message: PromptMessage): number {
  const calls = message.role === 'assistant' && message.calls;
  const attached = message.role === 'assistant' ? 0 : (message.attachments ?? []).length;
  return (
    estimateTokens(message.text) +
    (message.role === 'assistant' && message.provider ? itemTokens(message.provider) : 0) +
    (calls ? estimateTokens(JSON.stringify(calls)) : 0) +
    attached * TOKENS_PER_ATTACHMENT
  );
}

function itemTokens({ items = [], blob }: ProviderItems): number {
  return blob === undefined ? estimateTokens(JSON.stringify(items)) : Math.ceil(blob.bytes / 3);
}

/** The user message of a request that has no other. It never changes, so prefixes stay equal. */
const NEXT: PromptMessage = { role: 'user', text: 'Continue.' };

/**
 * Returns the messages of a prompt as every provider accepts them: the first and the last are not
 * the assistant's, and no two texts of the assistant follow each other. The model is then asked to
 * continue. The place depends only on the neighbors, so a request begins with all messages of the
 * request that its prompt extends by a reply.
 */
export function takeTurns(prompt: readonly PromptMessage[]): readonly PromptMessage[] {
  const asks = prompt[0]?.role === 'user' ? [] : [NEXT];
  return [
    ...asks,
    ...prompt.flatMap((message, index) => {
      const next = prompt[index + 1];
      const isAnswered = next !== undefined && next.role !== 'assistant';
      return isText(message) && !isAnswered ? [message, NEXT] : [message];
    }),
  ];
}

/** Whether a message is a text of the assistant, after which no results of calls come. */
function isText(message: PromptMessage): boolean {
  return message.role === 'assistant' && (message.calls ?? []).length === 0;
}

/** The first link of every digest chain. */
export const FIRST_LINK = chain('perdure', null);

/** Replaces a message in the prompt that a provider has refused. */
const REFUSED_MESSAGE = '[A message was here. The provider refused it, so it was left out.]';
/** Replaces the result of a call that a provider has refused. */
const REFUSED_RESULT =
  '[The result of this call was here. The provider refused it, so it was left out.]';
/** Follows the text of a message whose attachments a provider has refused. */
const REFUSED_ATTACHMENTS =
  '[The attachments of this message were here. The provider refused them, so they were left out.]';

/** Returns a message without the part that a provider has refused. */
function withoutRefused(message: PromptMessage): PromptMessage {
  if (message.refused === undefined) return message;
  if (message.role === 'assistant') return { role: 'assistant', text: '' };
  const { attachments: _, refused, ...rest } = message;
  if (refused === 'message') {
    return { ...rest, text: message.role === 'tool' ? REFUSED_RESULT : REFUSED_MESSAGE };
  }
  const text = [message.text, REFUSED_ATTACHMENTS].filter((one) => one !== '').join('\n\n');
  return { ...rest, text };
}

/**
 * Returns the transcript in which some messages in memory have a refused part, which leaves the
 * prompt. If the digest before them is not known, the transcript stays as it is.
 */
export function markRefused(
  transcript: Transcript,
  mark: (message: Message, index: number) => RefusedPart | undefined,
): Transcript {
  const start = transcript.chunks.length === 0 ? FIRST_LINK : transcript.chunksHead;
  if (start === undefined) return transcript;
  const messages = transcript.messages.map((message, index): Message => {
    const refused = message.refused === 'message' ? undefined : mark(message, index);
    return refused === undefined ? message : { ...message, refused };
  });
  const prompts = messages.map(toPromptMessage);
  const freed = sumTokens(transcript.messages.map(toPromptMessage)) - sumTokens(prompts);
  const head = prompts.reduce((link, prompt) => chain(link, prompt), start);
  return { ...transcript, messages, head, tokens: transcript.tokens - freed };
}

function sumTokens(messages: readonly PromptMessage[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

/**
 * Returns the part of a message that the model sees. It is built key by key, because the digest
 * depends on key order.
 */
export function toPromptMessage(given: PromptMessage): PromptMessage {
  const message = withoutRefused(given);
  switch (message.role) {
    case 'user':
      return message.attachments === undefined
        ? { role: 'user', text: message.text }
        : {
            role: 'user',
            text: message.text,
            attachments: message.attachments.map(promptAttachment),
          };
    case 'assistant':
      return {
        role: 'assistant',
        text: message.text,
        ...(message.calls && { calls: message.calls.map(promptCall) }),
        ...(message.provider && { provider: promptItems(message.provider) }),
      };
    case 'tool':
      return {
        role: 'tool',
        text: message.text,
        callId: message.callId,
        ...(message.attachments && { attachments: message.attachments.map(promptAttachment) }),
        ...(message.acknowledged && { acknowledged: true }),
        ...(message.ok !== undefined && { ok: message.ok }),
      };
  }
}

function promptAttachment(attachment: Attachment): Attachment {
  if ('url' in attachment) return { type: attachment.type, url: attachment.url };
  const { type, blob, mediaType, name } = attachment;
  const { sha256, bytes } = blob;
  return { type, blob: { sha256, bytes }, mediaType, ...(name !== undefined && { name }) };
}

function promptItems({ from, items, blob }: ProviderItems): ProviderItems {
  return {
    from,
    ...(items && { items }),
    ...(blob && { blob: { sha256: blob.sha256, bytes: blob.bytes } }),
  };
}

function promptCall(call: ToolCall): ToolCall {
  const { id, name, digest, via } = call;
  return { id, name, arguments: call.arguments, digest, ...(via && { via }) };
}

/** A call of a run with its result. */
export interface CallPair {
  readonly turn: number;
  readonly step: number;
  /** Number of the message that requests the call. */
  readonly n: number;
  /** When the call was requested: Unix time in ms. */
  readonly at: number;
  readonly call: ToolCall;
  /**
   * The result for the model; null if the call has none yet, or if it is not among the messages.
   */
  readonly result: ToolMessage | null;
}

/** Pairs the calls in these messages with their results, in call order. */
export function callPairs(messages: readonly Message[]): readonly CallPair[] {
  const results = new Map(
    messages.flatMap((message) =>
      message.role === 'tool' ? [[message.callId, message] as const] : [],
    ),
  );
  return messages.flatMap((message) => {
    if (message.role !== 'assistant') return [];
    const { turn, step, n, at, calls = [] } = message;
    return calls.map((call) => ({ turn, step, n, at, call, result: results.get(call.id) ?? null }));
  });
}

/** Returns the call with this id in the newest message that has one; undefined if there is none. */
export function findCall(callId: string, messages: readonly Message[]): ToolCall | undefined {
  for (const message of messages.toReversed()) {
    const call = message.role === 'assistant' && message.calls?.find(({ id }) => id === callId);
    if (call) return call;
  }
  return undefined;
}
