import { utf8ToBytes } from '@noble/hashes/utils.js';
import type { Attachment } from './transcript/messages.js';

/** A message on its way into the run, with the turn that it belongs to. */
export interface Incoming {
  readonly id: string;
  readonly text: string;
  readonly attachments?: readonly Attachment[];
  /** The turn that it begins or joins; told to the sender at once, and never changed. */
  readonly turn: number;
  readonly pinned?: true;
  /** Before its turn begins, the run takes the agent as its workers have it now. */
  readonly refresh?: true;
  /** Who sent it: a claim of the sender, recorded and not verified. */
  readonly by?: string;
}

/** A message that came by signal and was refused: a signal is recorded before anything is checked. */
export interface RefusedMessage {
  /** Its id; null where it had none that could be read. */
  readonly id: string | null;
  readonly reason: string;
  /** Unix time in ms. */
  readonly at: number;
}

/** Messages that wait, and which have been taken. Carried through all segments. */
export interface Inbox {
  readonly waiting: readonly Incoming[];
  /** Id → turn of the newest messages, oldest first: the same id again is the same message. */
  readonly seen: readonly (readonly [id: string, turn: number])[];
  /** The last turn that a message was given. */
  readonly lastTurn: number;
  /** Messages taken in all; absent: none. */
  readonly count?: number;
  /** The newest messages that came by signal and were refused, oldest first; absent: none. */
  readonly refused?: readonly RefusedMessage[];
}

/** How a message that comes during a turn is taken. */
export type AskMode = 'queue' | 'steer';

/** What `ask` takes. */
export interface Ask {
  readonly message: string;
  /** Images and files, by address or as they lie in the blob store: base64 text. */
  readonly attachments?: readonly Attachment[];
  /** The sender's own id of the message, so that sending it again does no harm. */
  readonly id?: string;
  /** `queue` (default): a turn of its own, in its turn; `steer`: joins the turn under way before its next model call. */
  readonly mode?: AskMode;
  /** Stays word for word when older messages are summarized. */
  readonly pin?: boolean;
  /** Take the agent's newest definition first; only for a message that begins a turn. */
  readonly refresh?: boolean;
  /** Who sends it: a claim, recorded with the message and not verified; 1 to 200 characters. */
  readonly by?: string;
}

export interface AskReceipt {
  readonly turn: number;
  /** The message was here before, under the same id. */
  readonly duplicate?: true;
}

/** Ids remembered; a repeat that comes after so many other messages counts as new. */
export const REMEMBERED_IDS = 1_000;
/** Refused messages remembered, the newest. */
export const REMEMBERED_REFUSALS = 20;
const MAX_REASON_CHARACTERS = 300;
/** What may wait at once: it is carried into the next segment as a whole. */
export const MAX_WAITING = { messages: 500, bytes: 512 * 1024 } as const;

export function emptyInbox(): Inbox {
  return { waiting: [], seen: [], lastTurn: 0 };
}

/** The turn of a message that is here already. */
export function findTurnOfMessage(inbox: Inbox, id: string): number | null {
  return inbox.seen.find(([seen]) => seen === id)?.[1] ?? null;
}

/** The turn that a new message would get. `current`: the turn under way, 0 for none. */
export function assignTurn(inbox: Inbox, current: number, mode: AskMode): number {
  if (mode === 'steer') {
    if (current > 0) return current;
    const [next] = inbox.waiting;
    if (next !== undefined) return next.turn;
  }
  return inbox.lastTurn + 1;
}

export function addMessage(inbox: Inbox, message: Incoming): Inbox {
  return {
    ...inbox,
    waiting: [...inbox.waiting, message],
    seen: [...inbox.seen, [message.id, message.turn] as const].slice(-REMEMBERED_IDS),
    lastTurn: Math.max(inbox.lastTurn, message.turn),
    count: (inbox.count ?? 0) + 1,
  };
}

/** The inbox with one more refusal on record; the oldest leave it. */
export function refuse(inbox: Inbox, { id, reason, at }: RefusedMessage): Inbox {
  const refused = { id, reason: reason.slice(0, MAX_REASON_CHARACTERS), at };
  return { ...inbox, refused: [...(inbox.refused ?? []), refused].slice(-REMEMBERED_REFUSALS) };
}

/** Takes out what belongs to a turn, in the order in which it came. */
export function take(inbox: Inbox, turn: number): { taken: readonly Incoming[]; inbox: Inbox } {
  const taken = inbox.waiting.filter((message) => message.turn === turn);
  const waiting = inbox.waiting.filter((message) => message.turn !== turn);
  return { taken, inbox: { ...inbox, waiting } };
}

/** Whether something waits for this turn. */
export function hasMessagesFor(inbox: Inbox, turn: number): boolean {
  return inbox.waiting.some((message) => message.turn === turn);
}

/** @returns why a further message cannot be taken now, or null */
export function inboxProblem(
  inbox: Inbox,
  coming: Pick<Incoming, 'text' | 'attachments'>,
): string | null {
  const { waiting } = inbox;
  if (waiting.length === 0) return null;
  if (waiting.length < MAX_WAITING.messages) {
    const bytes = waiting.reduce((sum, message) => sum + waitingBytes(message), 0);
    if (bytes + carriedBytes(coming) <= MAX_WAITING.bytes) return null;
  }
  return `${waiting.length} messages wait already; send it again when the run has taken some`;
}

/** A flood of signals asks for the size of what waits once for each of them, so it is counted once. */
const sizes = new WeakMap<Incoming, number>();

function waitingBytes(message: Incoming): number {
  const known = sizes.get(message);
  if (known !== undefined) return known;
  const bytes = carriedBytes(message);
  sizes.set(message, bytes);
  return bytes;
}

/** Bytes of what somebody said, as it is carried from segment to segment. */
export function carriedBytes({
  text,
  attachments,
}: Pick<Incoming, 'text' | 'attachments'>): number {
  const attached = attachments === undefined ? 0 : byteLength(JSON.stringify(attachments));
  return jsonLength(text) + attached;
}

/** Bytes of a text as it is carried: a control character takes six. */
export function jsonLength(text: string): number {
  return byteLength(JSON.stringify(text)) - 2;
}

export function byteLength(text: string): number {
  return utf8ToBytes(text).length;
}
