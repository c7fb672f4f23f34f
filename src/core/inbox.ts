import { utf8ToBytes } from '@noble/hashes/utils.js';
import type { GivenMessage } from './input/given-messages.js';
import type { GivenArtifact } from './input/given-artifacts.js';
import type { TurnContext } from './input/turn-context.js';
import type { Json, JsonObject } from './json.js';
import type { Attachment } from './transcript/messages.js';

/** A message that waits in the inbox, with the turn that it belongs to. */
export interface Incoming {
  readonly id: string;
  readonly text: string;
  readonly attachments?: readonly Attachment[];
  /** The turn that the message begins or joins. The sender gets it at once, and it never changes. */
  readonly turn: number;
  readonly pinned?: true;
  /** Before its turn begins, the run loads the agent's newest definition. */
  readonly refresh?: true;
  /** Who sent it: a claim of the sender, recorded and not verified. */
  readonly by?: string;
  /** For a graph: a patch of its state. The text may then be empty. */
  readonly input?: JsonObject;
  /** Several messages in place of the text, which is then empty. */
  readonly messages?: readonly GivenMessage[];
  /** The prompt of the agent that is the message's text; "text" is then empty. */
  readonly prompt?: string;
  /** The arguments of the prompt. */
  readonly args?: JsonObject;
  /** Values that become artifacts of the run with the message. */
  readonly artifacts?: readonly GivenArtifact[];
  /** What the functions of the turn receive beside, or instead of, the run's context. */
  readonly context?: TurnContext;
}

/** A message that came by signal and was refused: the server records a signal before it is checked. */
export interface RefusedMessage {
  /** The message's id; null if it had none that could be read. */
  readonly id: string | null;
  readonly reason: string;
  /** Unix time in ms. */
  readonly at: number;
}

/** The messages that wait, and the ids of those that were received. It is passed from segment to segment. */
export interface Inbox {
  readonly waiting: readonly Incoming[];
  /** Id and turn of the newest messages, oldest first: the same id again is the same message. */
  readonly seen: readonly (readonly [id: string, turn: number])[];
  /** The highest turn that a message belongs to. */
  readonly lastTurn: number;
  /** Number of messages received; absent if none. */
  readonly count?: number;
  /** The newest messages that came by signal and were refused, oldest first; absent if none. */
  readonly refused?: readonly RefusedMessage[];
}

/** What becomes of a message that arrives during a turn: see `Ask.mode`. */
export type AskMode = 'queue' | 'steer';

/** The argument of the update `ask`: a message for the run. */
export interface Ask {
  /** Required, except with `prompt` or `messages`, and for a graph with `input`. */
  readonly message?: string;
  /** In place of `message`: several, as a conversation; the first and the last one are of role `user`. */
  readonly messages?: readonly GivenMessage[];
  /** In place of `message`: a prompt of the agent, whose text, output, tools, and settings the turn uses. */
  readonly prompt?: string;
  /** The arguments of the prompt. */
  readonly args?: JsonObject;
  /** Images and files, by URL or as base64 text in the blob store. */
  readonly attachments?: readonly Attachment[];
  /** Values that become artifacts of the run, as the client has stored them for it. */
  readonly artifacts?: readonly GivenArtifact[];
  /** The sender's id of the message, which makes sending it again idempotent; 1 to 200 characters. */
  readonly id?: string;
  /**
   * `queue` (default): the message gets a turn of its own, after those before it. `steer`: it joins the
   * turn under way before its next model call.
   */
  readonly mode?: AskMode;
  /** The message stays word for word when older messages are summarized. */
  readonly pin?: boolean;
  /** The run loads the agent's newest definition first; only for a message that begins a turn. */
  readonly refresh?: boolean;
  /** Who sends the message: a claim of 1 to 200 characters, recorded and not verified. */
  readonly by?: string;
  /** For a run of a graph: a patch of the state with which the turn begins. */
  readonly input?: JsonObject;
  /**
   * JSON for the functions of this turn, at most 16,000 characters: it extends the run's `context`, field by
   * field, if both are objects. It replaces any other. The model never sees it.
   */
  readonly context?: Json;
  /** `replace`: the turn has nothing of the run's context; default `extend`. */
  readonly contextMode?: 'extend' | 'replace';
}

/** The answer of the update `ask`. */
export interface AskReceipt {
  /** The turn that the message begins or joins. */
  readonly turn: number;
  /** The run had received a message with the same id before. */
  readonly duplicate?: true;
}

/** Message ids that the run remembers. A repeat after so many other messages counts as new. */
export const REMEMBERED_IDS = 1_000;
/** Refused messages that the run remembers. */
export const REMEMBERED_REFUSALS = 20;
const MAX_REASON_CHARACTERS = 300;
/** What may wait at once: all of it is passed to the next segment. */
export const MAX_WAITING = { messages: 500, bytes: 512 * 1024 } as const;

export function emptyInbox(): Inbox {
  return { waiting: [], seen: [], lastTurn: 0 };
}

/** Returns the turn of a message that was received before; null for a new one. */
export function findTurnOfMessage(inbox: Inbox, id: string): number | null {
  return inbox.seen.find(([seen]) => seen === id)?.[1] ?? null;
}

/** Returns the turn that a new message gets. `current`: the turn under way, 0 for none. */
export function assignTurn(inbox: Inbox, current: number, mode: AskMode): number {
  if (mode === 'steer') {
    if (current > 0) return current;
    const [next] = inbox.waiting;
    if (next !== undefined) return next.turn;
  }
  return inbox.lastTurn + 1;
}

/** Returns the inbox with one more message. */
export function addMessage(inbox: Inbox, message: Incoming): Inbox {
  return {
    ...inbox,
    waiting: [...inbox.waiting, message],
    seen: [...inbox.seen, [message.id, message.turn] as const].slice(-REMEMBERED_IDS),
    lastTurn: Math.max(inbox.lastTurn, message.turn),
    count: (inbox.count ?? 0) + 1,
  };
}

/** Returns the inbox with one more refusal; the oldest are dropped. */
export function addRefusal(inbox: Inbox, { id, reason, at }: RefusedMessage): Inbox {
  const refused = { id, reason: reason.slice(0, MAX_REASON_CHARACTERS), at };
  return { ...inbox, refused: [...(inbox.refused ?? []), refused].slice(-REMEMBERED_REFUSALS) };
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

/** Whether a message waits for this turn. */
export function hasMessagesFor(inbox: Inbox, turn: number): boolean {
  return inbox.waiting.some((message) => message.turn === turn);
}

/** Returns why the inbox does not accept a further message now, or null. */
export function inboxProblem(inbox: Inbox, coming: Carried): string | null {
  const { waiting } = inbox;
  if (waiting.length === 0) return null;
  if (waiting.length < MAX_WAITING.messages) {
    const bytes = waiting.reduce((sum, message) => sum + waitingBytes(message), 0);
    if (bytes + carriedBytes(coming) <= MAX_WAITING.bytes) return null;
  }
  return `${waiting.length} messages wait already; send it again later`;
}

/** Sizes of waiting messages. Each signal needs the sum, so a flood of signals would count them often. */
const sizes = new WeakMap<Incoming, number>();

function waitingBytes(message: Incoming): number {
  const known = sizes.get(message);
  if (known !== undefined) return known;
  const bytes = carriedBytes(message);
  sizes.set(message, bytes);
  return bytes;
}

/** The parts of a message that count toward its size. */
type Carried = Pick<
  Incoming,
  'text' | 'attachments' | 'artifacts' | 'input' | 'args' | 'messages' | 'context'
>;

/** Returns the bytes of a message as it is passed from segment to segment. */
export function carriedBytes({ text, ...rest }: Carried): number {
  const { attachments, artifacts, input, args, messages, context } = rest;
  const parts = [attachments, artifacts, input, args, messages, context].filter(
    (part) => part !== undefined,
  );
  const bytes = parts.reduce((sum, part) => sum + byteLength(JSON.stringify(part)), 0);
  return jsonLength(text) + bytes;
}

/** Returns the bytes of a text in JSON, without quotes: a control character has six. */
export function jsonLength(text: string): number {
  return byteLength(JSON.stringify(text)) - 2;
}

/** Returns the bytes of a text in UTF-8. */
export function byteLength(text: string): number {
  return utf8ToBytes(text).length;
}
