import type { Limits } from '../core/definition/definition.js';
import type { Ask } from '../core/input/inbox.js';
import { type Json, isObject, sha256Hex } from '../core/text/json.js';
import type { Request } from '../core/transcript/request.js';
import type { MemoryOptions } from '../memory/run-in-memory.js';
import type { Moments } from '../memory/script.js';
import type { BlobStore } from '../storage/blob-store.js';
import {
  type Action,
  cancelRun,
  cancelTurn,
  closeRun,
  decision,
  noDecision,
  send,
  setRunLimits,
} from '../testing/actions.js';
import {
  type PlacedDecision,
  grantOf,
  isAbout,
  requestOf,
  undecided,
  wasLeftUndecided,
} from './decided-requests.js';
import type { Found } from './divergence.js';
import {
  type FactOf,
  type RecordedFact,
  type RecordedRun,
  type Recording,
  factsOf,
} from './recording.js';

/** What came from outside: a message, a cancellation, or other limits. */
interface Received {
  readonly action: Action;
  /** Its place among the facts of the run, and the Unix time in ms. */
  readonly index: number;
  readonly at: number;
  /** How many model calls of all runs had been answered before it. */
  readonly replies: number;
  isDone: boolean;
}

/** Returns what is to be done, and notes that it is. */
function take(one: Received | undefined): Action | undefined {
  if (one !== undefined) one.isDone = true;
  return one?.action;
}

/** Returns what happens to the rerun from outside, as it was recorded. */
export function recordedScript(
  recording: Recording,
  root: RecordedRun,
  {
    found,
    decisions,
    idOf,
  }: {
    readonly found: Found;
    readonly decisions: readonly PlacedDecision[];
    /** Returns the recorded id of a run of the rerun. */
    readonly idOf: (id: string) => string;
  },
): { readonly options: MemoryOptions; readonly moments: Moments } {
  const { received, steering } = receivedBy(recording, root, decisions);
  let steps = 0;
  const waits = ({ isDone, replies }: Received): boolean => !isDone && replies <= steps;
  /** Whether all decisions are made that came between the last reply and this. */
  const isDecided = ({ index }: Received): boolean => {
    const last = root.facts.findLastIndex((fact, at) => at < index && fact.type === 'reply');
    const between = root.facts.slice(last + 1, index);
    return decisions.every(
      (one) => one.isUsed || one.run !== root || isOfUndo(one) || !between.includes(one.fact),
    );
  };
  const isBefore = (one: Received, { run, fact }: PlacedDecision): boolean =>
    run === root ? one.index < root.facts.indexOf(fact) : one.at < fact.at;
  const decide = (request: Request, asking: string): Action => {
    const runId = idOf(asking);
    const open = decisions.filter(({ run, isUsed }) => !isUsed && run.id === runId);
    const same = open.filter(({ fact }) => isAbout(request, fact));
    const next = same.find(({ fact }) => requestOf(fact) === request.id) ?? same[0];
    const recorded = recording.runs.find(({ id }) => id === runId);
    if (next === undefined) {
      const granted = recorded && grantOf(request, recorded);
      if (granted) return decision(approvalIn(granted));
      // After a divergence, requests are its consequences.
      if (found.divergence === null && !wasLeftUndecided(request, recorded)) {
        const facts = open.map(({ fact }) => fact);
        const divergence = undecided(request, { ...(recorded ?? root), open: facts });
        found.request ??= { run: runId, request, divergence };
      }
      return noDecision();
    }
    const earlier = take(received.find((one) => waits(one) && isBefore(one, next)));
    if (earlier !== undefined) return earlier;
    next.isUsed = true;
    if (next.fact.type === 'message') return answering(next.fact.message, request);
    return decision(madeIn(next.fact));
  };
  const moments: Moments = {
    step(number) {
      steps = number;
      const due = received.filter(
        (one) => !one.isDone && INTERRUPTS.has(one.action.type) && one.replies < number,
      );
      return due.flatMap((one) => take(one) ?? []);
    },
    quiet({ isWaiting, next }) {
      const [first = received.length] = received.flatMap(({ isDone, action }, index) =>
        isDone || (isWaiting && action.type === 'cancel-turn') ? [] : [index],
      );
      // The turns are over that these would cancel.
      if (isWaiting) for (const over of received.slice(0, first)) over.isDone = true;
      const one = received[first];
      if (one === undefined) return undefined;
      const isDue = isWaiting || (waits(one) && isDecided(one) && next > one.at);
      return isDue ? take(one) : undefined;
    },
    until: root.endedAt === null ? lastTime(recording) : Infinity,
  };
  const options = {
    id: root.id,
    startAt: root.startedAt,
    blobs: blobsOf(recording),
    env: {},
    on: { request: { '*': decide }, step: steering },
  };
  return { options, moments };
}

/** Returns an approval for one more call, without the grant, which its own request brings. */
function approvalIn(fact: FactOf<'decision'>): Parameters<typeof decision>[0] {
  const { grant: _grant, ...approval } = madeIn(fact);
  return approval;
}

/** Returns a decision as it was made, for the request as the rerun has raised it. */
function madeIn({ decision: made }: FactOf<'decision'>): Parameters<typeof decision>[0] {
  const { request: _request, digest: _digest, patched: _patched, ...rest } = made;
  return rest;
}

/** Whether a decision was about an undo, which the rerun does not ask for. */
function isOfUndo({ fact }: PlacedDecision): boolean {
  return fact.about?.undo === true;
}

/** What acts on a turn under way, also during a model call. */
const INTERRUPTS: ReadonlySet<Action['type']> = new Set(['cancel', 'cancel-turn', 'set-limits']);

/** Returns what the run received, in order, and the messages that joined a turn, by model calls. */
function receivedBy(
  recording: Recording,
  root: RecordedRun,
  decisions: readonly PlacedDecision[],
): {
  readonly received: readonly Received[];
  readonly steering: Readonly<Record<number, readonly Action[]>>;
} {
  const replies = factsOf(recording, 'reply').map(({ fact }) => fact);
  const deciding: ReadonlySet<RecordedFact> = new Set(decisions.map(({ fact }) => fact));
  const received: Received[] = [];
  const steering: Record<number, Action[]> = {};
  /** The number of the model call whose reply the run got last. */
  let last = 0;
  for (const [index, fact] of root.facts.entries()) {
    if (fact.type === 'reply') last = replies.indexOf(fact) + 1;
    const action = deciding.has(fact) ? null : actionOf(fact);
    if (action === null) continue;
    if (fact.type === 'message' && fact.message.mode === 'steer') {
      // A message that comes during a call joins the prompt of the next one.
      const call = Math.max(1, joinedAfter(root, replies, fact.message.id) ?? last);
      steering[call] = [...(steering[call] ?? []), action];
      continue;
    }
    const { at } = fact;
    const own = root.facts.slice(0, index);
    const earlier = replies.filter(
      (one) =>
        one.at < at || own.includes(one) || (one.at === at && isInterrupted(one, recording, root)),
    );
    received.push({ action, index, at, replies: earlier.length, isDone: false });
  }
  return { received, steering };
}

/** Whether a called agent was canceled after this reply: another history does not say when. */
function isInterrupted(reply: RecordedFact, { runs }: Recording, root: RecordedRun): boolean {
  return runs.some(({ facts }) => {
    const index = facts.indexOf(reply);
    return facts !== root.facts && index >= 0 && facts.slice(index).some(isCancel);
  });
}

function isCancel({ type }: RecordedFact): boolean {
  return type === 'cancel';
}

/** Returns what someone did; null for any other fact. */
function actionOf(fact: RecordedFact): Action | null {
  if (fact.type === 'cancel') return cancelRun();
  if (fact.type === 'message') return sendAgain(fact.message);
  if (fact.type !== 'control') return null;
  if (fact.name === 'close') return closeRun();
  if (fact.name === 'cancelTurn') return cancelTurn();
  return fact.name === 'setLimits' ? setRunLimits(limitsIn(fact.input)) : null;
}

function sendAgain({ sentAt: _sentAt, ...message }: Ask): Action {
  return send(message);
}

/** Sends a message that decides, for the request as the rerun has raised it. */
function answering(message: Ask, { id: request, digest }: Request): Action {
  const isBound = typeof message.answers === 'object';
  return sendAgain({ ...message, ...(isBound && { answers: { request, digest } }) });
}

/** Returns the number of the last model call before a message of the transcript; null if it has none. */
function joinedAfter(
  root: RecordedRun,
  replies: readonly FactOf<'reply'>[],
  id: string | undefined,
): number | null {
  const { messages, facts } = root;
  const at = messages.findIndex((one) => one.role === 'user' && one.id === id && id !== undefined);
  if (at < 0) return null;
  const before = messages.slice(0, at).findLast(({ role }) => role === 'assistant');
  const index = replies.findIndex(
    (fact) => fact.turn === before?.turn && fact.step === before.step && facts.includes(fact),
  );
  return index < 0 ? null : index + 1;
}

function limitsIn(input: Json): Limits {
  const { by: _by, door: _door, ...limits } = isObject(input) ? input : {};
  return limits;
}

/** Returns the last time of which a recording says something: Unix time in ms. */
function lastTime({ runs }: Recording): number {
  const times = runs.flatMap(({ startedAt, facts, messages }) => [
    startedAt,
    ...facts.map(({ at }) => at),
    ...messages.map(({ at }) => at),
  ]);
  return times.reduce((one, other) => Math.max(one, other), 0);
}

/** A blob store with the texts of a recording. */
function blobsOf({ blobs }: Recording): BlobStore {
  const texts = new Map(Object.entries(blobs));
  return {
    async put(text) {
      const sha256 = sha256Hex(text);
      texts.set(sha256, text);
      return { sha256, bytes: Buffer.byteLength(text) };
    },
    async get({ sha256 }) {
      const text = texts.get(sha256);
      if (text === undefined) throw new Error(`the recording has no text ${sha256}`);
      return text;
    },
  };
}
