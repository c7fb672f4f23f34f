import { askingWork, openRequests } from '../requests/open-requests.js';
import { isExpired } from '../requests/commands.js';
import { type Reader, withFixFor } from '../requests/refusal.js';
import { isLoaded } from '../rules/limits.js';
import type { RunState } from '../state/state.js';
import {
  type PromptPage,
  type RunStatus,
  type RunPhase,
  type TranscriptPage,
  type TranscriptRange,
  type TurnMemo,
  decidedByPeople,
} from '../state/status.js';
import { stepsOf } from '../state/turn-definition.js';
import { getOutcome } from '../state/turn.js';
import { type Undoable, undoableCalls } from '../state/undo.js';
import { UNDO, anyInFlight, blocks, findWork } from '../state/work.js';
import { isObject } from '../text/json.js';
import { show } from '../text/text.js';
import { type Message, isSide } from '../transcript/messages.js';
import type { Outcome } from '../transcript/outcome.js';
import type { Request } from '../transcript/request.js';
import { type Transcript, chunkedLength } from '../transcript/transcript.js';
import { messageBytes } from './carry.js';
import { nextAction } from './next-action.js';

/** The parts of a run's status that its state does not contain. */
interface StatusContext {
  /** The run's own outcome; null while the run continues. */
  readonly ended: Outcome | null;
  /** The run's id in the commands that decide. */
  readonly run: string;
  /** For whom and when the commands work; absent: for an unknown reader, before any request expires. */
  readonly reader?: Reader;
}

/** The fields of a status that derive from the state of a run. */
export type StateStatus = Omit<RunStatus, 'id' | 'runId' | 'historyLength' | 'doing' | 'reports'>;

/** What search attributes show of a run. It is written often, so it does not build the requests. */
export function shownStatus(
  state: RunState,
  ended: Outcome | null,
): Pick<RunStatus, 'agent' | 'status' | 'reason'> {
  const outcome = ended ?? getOutcome(state);
  // A run that Temporal ended keeps its requests in its state, and no decision reaches them.
  const [asking] = ended === null ? askingWork(state) : [];
  return {
    agent: state.config.definition.name,
    status: phaseOf(state, ended),
    reason:
      // A turn that has ended does not say for what an open run waits, such as for a decision about an undo.
      (isDone(state, ended) ? outcome?.reason : undefined) ??
      asking?.request.kind ??
      blocks(state)[0]?.reason ??
      outcome?.reason ??
      null,
  };
}

/** Returns a run's status as the query and every reader show it. */
export function runStatus(
  state: RunState,
  { ended, run, reader = { now: 0 } }: StatusContext,
): StateStatus {
  const outcome = ended ?? getOutcome(state);
  const open = ended === null ? openRequests(state, run) : [];
  const pending = open.map((one) => withFixFor(state, one, { ...reader, run }));
  const [first] = pending;
  const problem = first === undefined ? blocks(state)[0]?.message : messageOf(first, reader.now);
  const { forkedFrom, config } = state;
  const left = config.definition.mcp?.left;
  return {
    ...shownStatus(state, ended),
    ...(state.paused && !isDone(state, ended) && { paused: true }),
    message: (isDone(state, ended) ? outcome?.error : (problem ?? outcome?.error)) ?? null,
    turn: state.turn.number,
    step: stepsOf(state),
    segments: state.segments,
    // No turn takes the messages that are left at the end of a run.
    queued: ended === null ? state.inbox.waiting.length : 0,
    limits: config.limits,
    usage: state.total.usage,
    pending,
    ...(state.grants && state.grants.length > 0 && { grants: state.grants }),
    ...undoable(state, { ended: ended !== null, over: isOver(state) }),
    outcome,
    ...(forkedFrom && { forkedFrom }),
    ...(left && { left }),
    ...decidedByPeople(state),
  };
}

/**
 * Returns the outcome of a run that is only finishing. It archives its messages first, which may be
 * delayed if its store is down. Null for a run that continues.
 */
export function finalOutcome(state: RunState): Outcome | null {
  const work = state.work.filter(({ last }) => last === undefined);
  const action = nextAction({ ...state, work });
  return action.type === 'finish' ? action.outcome : null;
}

/** Names the command that decides, unless the run would refuse it now. */
function messageOf({ why, fix, checking, expiresAt }: Request, now: number): string {
  if (checking) return `${why}; a decision waits for a worker to check it`;
  return isExpired({ expiresAt }, now)
    ? `${why}; it has expired, so it can no longer be decided`
    : `${why}; decide: ${fix}`;
}

/**
 * Returns the calls that can be undone. After its end, a run undoes no call, so only those remain
 * whose undo was requested.
 */
function undoable(
  state: RunState,
  run: { readonly ended: boolean; readonly over: boolean },
): Pick<RunStatus, 'undoable'> {
  if (!state.kept) return {};
  if (run.ended) return { undoable: undosAtEnd(state) };
  const calls = undoableCalls(state).map((call) => {
    const request = run.over ? undefined : findWork(state, `${UNDO}${call.call}`)?.request;
    return request === undefined ? call : { ...call, request: request.id };
  });
  return { undoable: run.over ? calls.filter((call) => call.state !== undefined) : calls };
}

/** Returns the calls whose undo was requested, as they stay if the run ends in this state. */
export function undosAtEnd(state: RunState): readonly Undoable[] {
  return undoableCalls(state).flatMap((call) => {
    if (call.state !== 'undoing') return call.state === undefined ? [] : [call];
    const { request, phase, block, starts } = findWork(state, `${UNDO}${call.call}`) ?? {};
    if (request !== undefined) {
      return [{ ...call, state: 'not_undone', message: 'the run ended before it was approved' }];
    }
    const isUnknown = phase !== 'waiting' || block !== undefined || starts !== undefined;
    if (!isUnknown) {
      return [{ ...call, state: 'not_undone', message: 'the run ended before it was executed' }];
    }
    const message = 'the run ended meanwhile, so it is unknown whether the call is undone';
    return [{ ...call, state: 'failed', message }];
  });
}

/** Whether a task has its outcome. */
function isOver(state: RunState): boolean {
  return !state.open && getOutcome(state) !== null;
}

/** Whether a run has ended, or is about to. */
function isDone(state: RunState, ended: Outcome | null): boolean {
  return ended !== null || isOver(state);
}

function phaseOf(state: RunState, ended: Outcome | null): RunPhase {
  if (isDone(state, ended)) return 'done';
  if (askingWork(state).length > 0) return 'waiting_decision';
  if (blocks(state).length > 0) return 'blocked';
  if (state.paused) return 'paused';
  if (anyInFlight(state) || !isLoaded(state)) return 'working';
  const { type } = nextAction(state);
  if (type === 'await-message') return 'waiting_message';
  return type === 'await-time' ? 'waiting_time' : 'working';
}

/** Maximum bytes of a page. A query whose answer exceeds 2 MiB fails. */
const PAGE_BYTES = 400 * 1024;
const MEMO_ANSWER_CHARACTERS = 1_000;

/**
 * Returns the messages with numbers from `from` to before `to`: at least one, and at most about 400
 * KB. The page has only messages of this segment; `total` counts all messages of the run.
 */
export function transcriptPage(
  transcript: Transcript,
  range: TranscriptRange = {},
): TranscriptPage {
  const from = Math.max(0, Math.floor(range.from ?? 0));
  const to = range.to ?? transcript.next;
  const { messages, pruned = [] } = transcript;
  const inRange = [...messages, ...pruned]
    .filter((message) => message.n >= from && message.n < to && (range.side || !isSide(message)))
    .toSorted((one, other) => one.n - other.n);
  return { messages: limitedPage(inRange), total: transcript.next };
}

/**
 * Returns a part of the prompt, by place: the chunks by reference, then messages of at most about
 * 400 KB.
 */
export function promptPage(
  transcript: Transcript,
  { from, to }: { from: number; to: number },
): PromptPage {
  const { chunks, messages } = transcript;
  const start = chunkedLength(transcript);
  const inRange = messages.slice(Math.max(0, from - start), Math.max(0, to - start));
  return { chunks, start, messages: limitedPage(inRange) };
}

/** Returns what is wrong with the range of a query, or null. `required`: its required fields. */
export function rangeProblem(
  query: string,
  value: unknown,
  required: readonly string[] = [],
): string | null {
  if ((value === undefined || value === null) && required.length === 0) return null;
  if (!isObject(value)) return `${query}: expected a range, got ${show(value)}; give {"from": 0}`;
  for (const name of ['from', 'to']) {
    const place = value[name];
    if (place === undefined && !required.includes(name)) continue;
    if (typeof place !== 'number' || !(place >= 0)) {
      return `${query}.${name}: expected a number from 0, got ${show(place)}`;
    }
  }
  const { side } = value;
  if (side === undefined || typeof side === 'boolean') return null;
  return `${query}.side: expected true or false, got ${show(side)}`;
}

function limitedPage(inRange: readonly Message[]): readonly Message[] {
  let bytes = 0;
  const end = inRange.findIndex((message, index) => {
    bytes += messageBytes(message);
    return index > 0 && bytes > PAGE_BYTES;
  });
  return end === -1 ? inRange : inRange.slice(0, end);
}

/** Returns the memo after a turn. It is small and can be read without a worker. */
export function turnMemo(turn: number, outcome: Outcome): TurnMemo & { outcome?: Outcome } {
  const { status, reason } = outcome;
  // A canceled workflow has no result, so the memo has its outcome.
  const canceled = status === 'cancelled' && {
    outcome: { ...outcome, answer: cut(outcome.answer) },
  };
  return { turn, status, reason, ...canceled };
}

function cut(text: string | null): string | null {
  if (text === null || text.length <= MEMO_ANSWER_CHARACTERS) return text;
  return `${text.slice(0, MEMO_ANSWER_CHARACTERS)}…`;
}
