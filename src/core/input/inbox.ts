import { utf8ToBytes } from '@noble/hashes/utils.js';
import { type Json, type JsonObject, canonicalJson, sha256Hex } from '../text/json.js';
import type { Attachment, SuppliedMessage } from '../transcript/messages.js';
import type { AttachedArtifact, TurnContext } from './turn-context.js';

/** A message that waits in the inbox, with the turn that it belongs to. */
export interface Incoming {
  readonly id: string;
  readonly text: string;
  readonly attachments?: readonly Attachment[];
  /**
   * The turn that the message begins or joins. The sender learns it at once, and it never changes.
   */
  readonly turn: number;
  readonly pinned?: true;
  /** The run loads the agent's newest definition before the message's turn begins. */
  readonly refresh?: true;
  /** Who sent it: a claim of the sender, unless an interface has verified it. */
  readonly by?: string;
  /** The interface that has verified `by`, such as `http`; absent: `by` is a claim. Only a server sets it. */
  readonly door?: string;
  /** For the first message of a called agent: everyone for whom it was called. */
  readonly requesters?: readonly string[];
  /** For a graph: a patch of its state. The text may then be empty. */
  readonly input?: JsonObject;
  /** Several messages in place of the text, which is then empty. */
  readonly messages?: readonly SuppliedMessage[];
  /** The agent's named prompt that replaces the text; `text` is then empty. */
  readonly prompt?: string;
  /** The arguments of the prompt. Default: none. */
  readonly args?: JsonObject;
  /** Values that become artifacts of the run when the message joins it. */
  readonly artifacts?: readonly AttachedArtifact[];
  /** Context for the turn's functions, in addition to the run's context or instead of it. */
  readonly context?: TurnContext;
  /** Settings of the model for the turn, in addition to those of the agent. */
  readonly settings?: JsonObject;
}

/**
 * A message that came by signal and was refused: the server records a signal before it is checked.
 */
export interface RefusedMessage {
  /** The message's id; null if it had no readable id. */
  readonly id: string | null;
  readonly reason: string;
  /** Unix time in ms. */
  readonly at: number;
}

/** A received message: its id, its turn, and what it said; see `contentDigest`. */
export type SeenMessage = readonly [id: string, turn: number, digest?: string];

/** The waiting messages and the ids of received messages. It is passed from segment to segment. */
export interface Inbox {
  readonly waiting: readonly Incoming[];
  /** The newest messages, oldest first. A repeated id means the same message. */
  readonly seen: readonly SeenMessage[];
  /** The highest turn that a message belongs to. */
  readonly lastTurn: number;
  /** Number of messages received; absent if none. */
  readonly count?: number;
  /** The newest messages that came by signal and were refused, oldest first; absent if none. */
  readonly refused?: readonly RefusedMessage[];
  /** Number of all messages that came by signal and were refused; absent if none. */
  readonly refusedTotal?: number;
}

/** How a message that arrives during a turn is handled: see `Ask.mode`. */
export type AskMode = 'queue' | 'steer';

/** The request that a message answers, as its sender has seen it. */
export interface AnsweredRequest {
  readonly request: string;
  readonly digest: string;
}

/** The argument of the update `ask`: a message for the run. */
export interface Ask {
  /** Required, except with `prompt` or `messages`, and for a graph with `input`. */
  readonly message?: string;
  /**
   * Several messages, as a conversation, in place of `message`. The first and the last have role
   * `user`. Default: none.
   */
  readonly messages?: readonly SuppliedMessage[];
  /**
   * A prompt of the agent in place of `message`. The turn uses its text, output, tools, and
   * settings. Default: none.
   */
  readonly prompt?: string;
  /** The arguments of the prompt. Default: none. */
  readonly args?: JsonObject;
  /** Images and files, by URL or as base64 text in the blob store. Default: none. */
  readonly attachments?: readonly Attachment[];
  /** Values, stored by the client, that become artifacts of the run. Default: none. */
  readonly artifacts?: readonly AttachedArtifact[];
  /**
   * The sender's id of the message, 1 to 200 characters, which makes sending it again idempotent.
   * Default: none.
   */
  readonly id?: string;
  /**
   * `queue` (default): the message gets its own turn, after those of earlier messages. `steer`: it
   * joins the turn under way before its next model call.
   */
  readonly mode?: AskMode;
  /** Whether the message stays verbatim when older messages are summarized; default false. */
  readonly pin?: boolean;
  /**
   * Whether the run loads the agent's newest definition first; only for a message that begins a
   * turn. Default: false.
   */
  readonly refresh?: boolean;
  /**
   * Who sends the message: a claim of 1 to 200 characters, recorded and not verified. Default: `by`
   * of the client, if it has one.
   */
  readonly by?: string;
  /** The interface that has verified `by`, such as `http`; absent: `by` is a claim. Only a server sets it. */
  readonly door?: string;
  /**
   * What the message may decide. `false`: nothing. A request with its digest: exactly that, with the
   * words of the message; a message about another form of the request is refused. By default, a
   * clear answer decides about the open question of a graph, unless it was sent before that question
   * was raised or another person has answered an earlier form of it.
   */
  readonly answers?: boolean | AnsweredRequest;
  /**
   * When the sender sent it, by the sender's clock, Unix time in ms. The client adds it. Default:
   * none.
   */
  readonly sentAt?: number;
  /** For a run of a graph: a patch of the state with which the turn begins. Default: none. */
  readonly input?: JsonObject;
  /**
   * JSON for the functions of this turn, at most 16,000 characters: it extends the run's `context`
   * field by field if both are objects, and replaces it otherwise. The model never sees it.
   * Default: the run's alone.
   */
  readonly context?: Json;
  /** `replace`: the turn does not use the run's context. Default: `extend`. */
  readonly contextMode?: 'extend' | 'replace';
  /**
   * Settings of the model for this turn, such as `temperature` or `metadata`, in addition to those
   * of the agent, which has to allow them (`callSettings`). Default: none.
   */
  readonly settings?: JsonObject;
}

/** The answer of the update `ask`. */
export interface AskReceipt {
  /** The turn that the message begins or joins. */
  readonly turn: number;
  /** The run had received a message with the same id before. */
  readonly duplicate?: true;
  /** A digest of what the message with this id says. Workers of older versions give none. */
  readonly digest?: string;
}

/**
 * Returns a digest of what a message says, and of how much is attached, 16 characters long. The server answers a repeated update
 * itself, with the first receipt, so only this shows that another message had the same id.
 */
export function contentDigest({
  message,
  prompt,
  args,
  input,
  messages,
  attachments = [],
  artifacts = [],
}: Pick<
  Ask,
  'message' | 'prompt' | 'args' | 'input' | 'messages' | 'attachments' | 'artifacts'
>): string {
  const words = [message ?? '', prompt, args, input, messages].map((part) => part ?? null);
  // Their addresses and references may differ when they are sent again.
  const attached = attachments.length + artifacts.length;
  const content = attached === 0 ? words : [...words, attached];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is sent as JSON
  const sent = JSON.parse(JSON.stringify(content)) as Json;
  return sha256Hex(canonicalJson(sent)).slice(0, 16);
}

/**
 * Number of message ids that the run remembers. A message repeated after this many others counts as
 * new.
 */
export const REMEMBERED_IDS = 1_000;
/** Number of refused messages that the run remembers. */
export const REMEMBERED_REFUSALS = 20;
const MAX_REASON_CHARACTERS = 300;
/** The maximum that may wait at once, because all of it is passed to the next segment. */
export const MAX_WAITING = { messages: 500, bytes: 512 * 1024 } as const;

export function emptyInbox(): Inbox {
  return { waiting: [], seen: [], lastTurn: 0 };
}

/** Returns why a message cannot have its id, or null. `digest`: of the one that the run has received under it. */
export function otherMessageProblem(ask: Ask, digest: string | undefined): string | null {
  if (digest === undefined || digest === contentDigest(ask)) return null;
  return 'id: the run has received another message with this id, and this one was not delivered; give it an id of its own';
}

/** Returns the turn of a message that was received before; null for a new one. */
export function findTurnOfMessage(inbox: Inbox, id: string): number | null {
  return findSeen(inbox, id)?.[1] ?? null;
}

/** Returns the receipt of a message that was received before; null for a new one. */
export function repeatedReceipt(inbox: Inbox, id: string): AskReceipt | null {
  const seen = findSeen(inbox, id);
  if (seen === null) return null;
  const [, turn, digest] = seen;
  return { turn, duplicate: true, ...(digest !== undefined && { digest }) };
}

function findSeen({ seen }: Inbox, id: string): SeenMessage | null {
  return seen.find(([known]) => known === id) ?? null;
}

/** Returns the turn for a new message. `current`: the turn under way, 0 for none. */
export function assignTurn(inbox: Inbox, current: number, mode: AskMode): number {
  if (mode === 'steer') {
    if (current > 0) return current;
    const [next] = inbox.waiting;
    if (next !== undefined) return next.turn;
  }
  return inbox.lastTurn + 1;
}

/** Returns the inbox with one more message. */
export function addMessage(inbox: Inbox, message: Incoming, withDigest = false): Inbox {
  const { id, turn, text } = message;
  const seen = withDigest
    ? ([id, turn, contentDigest({ ...message, message: text })] as const)
    : ([id, turn] as const);
  return {
    ...inbox,
    waiting: [...inbox.waiting, message],
    seen: [...inbox.seen, seen].slice(-REMEMBERED_IDS),
    lastTurn: Math.max(inbox.lastTurn, turn),
    count: (inbox.count ?? 0) + 1,
  };
}

/** Returns the inbox with one more refusal; the oldest are dropped. */
export function addRefusal(inbox: Inbox, { id, reason, at }: RefusedMessage): Inbox {
  const refused = { id, reason: reason.slice(0, MAX_REASON_CHARACTERS), at };
  return {
    ...inbox,
    refused: [...(inbox.refused ?? []), refused].slice(-REMEMBERED_REFUSALS),
    refusedTotal: countRefusals(inbox) + 1,
  };
}

/** Returns the number of all refused messages. States of older versions have only the list. */
export function countRefusals({ refused = [], refusedTotal = refused.length }: Inbox): number {
  return refusedTotal;
}

/** Removes the messages that belong to a turn, and returns them in the order of their arrival. */
export function takeMessages(
  inbox: Inbox,
  turn: number,
): { taken: readonly Incoming[]; inbox: Inbox } {
  const taken = inbox.waiting.filter((message) => message.turn === turn);
  const waiting = inbox.waiting.filter((message) => message.turn !== turn);
  return { taken, inbox: { ...inbox, waiting } };
}

/** Returns the claimed names behind messages: their senders, and those for whom an agent sent them. */
export function namesIn(
  messages: readonly Pick<Incoming, 'by' | 'requesters'>[],
): readonly string[] {
  return messages.flatMap(({ by, requesters = [] }) =>
    by === undefined ? requesters : [by, ...requesters],
  );
}

/** Whether the sender of a message is unknown. */
export function isAnonymous({ by }: Pick<Incoming, 'by'>): boolean {
  return by === undefined;
}

/** Whether a message waits for this turn. */
export function hasMessagesFor(inbox: Inbox, turn: number): boolean {
  return inbox.waiting.some((message) => message.turn === turn);
}

/** Returns why the inbox cannot accept another message now, or null. */
export function inboxProblem(inbox: Inbox, coming: CarriedMessage): string | null {
  const { waiting } = inbox;
  if (waiting.length === 0) return null;
  if (waiting.length < MAX_WAITING.messages) {
    const bytes = waiting.reduce((sum, message) => sum + waitingBytes(message), 0);
    if (bytes + carriedBytes(coming) <= MAX_WAITING.bytes) return null;
  }
  return `${waiting.length} messages are already waiting; send it again later`;
}

/** Cached sizes of waiting messages, because each signal needs their sum. */
const sizes = new WeakMap<Incoming, number>();

function waitingBytes(message: Incoming): number {
  const known = sizes.get(message);
  if (known !== undefined) return known;
  const bytes = carriedBytes(message);
  sizes.set(message, bytes);
  return bytes;
}

/** The parts of a message that count toward its size. */
type CarriedMessage = Pick<
  Incoming,
  'text' | 'attachments' | 'artifacts' | 'input' | 'args' | 'messages' | 'context'
>;

/** Returns the size in bytes of a message when passed from segment to segment. */
export function carriedBytes({ text, ...rest }: CarriedMessage): number {
  const { attachments, artifacts, input, args, messages, context } = rest;
  const parts = [attachments, artifacts, input, args, messages, context].filter(
    (part) => part !== undefined,
  );
  const bytes = parts.reduce((sum, part) => sum + byteLength(JSON.stringify(part)), 0);
  return jsonLength(text) + bytes;
}

/**
 * Returns the size in bytes of a text in JSON, without quotes; a control character takes up to six.
 */
export function jsonLength(text: string): number {
  return byteLength(JSON.stringify(text)) - 2;
}

/** Returns the size in bytes of a text in UTF-8. */
export function byteLength(text: string): number {
  return utf8ToBytes(text).length;
}
