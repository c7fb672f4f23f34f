import { distance } from 'fastest-levenshtein';
import { listInLine, visible } from '../core/state/summaries.js';
import { isUndoNote } from '../core/state/undo.js';
import { type Json, canonicalJson, isObject } from '../core/text/json.js';
import { failureOf } from '../core/transcript/call-result.js';
import type { Message, ToolMessage } from '../core/transcript/messages.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { findCall } from '../core/transcript/transcript.js';
import type { Request } from '../core/transcript/request.js';
import {
  type ComparedCall,
  callText,
  comparedCall,
  isComparedCall,
  saidText,
  valueText,
} from './divergence-text.js';
import { nodeCalls } from './node-calls.js';
import type { RecordedRun, Recording } from './recording.js';

/** The first place at which a rerun differs from its recording. */
export interface Divergence {
  /** The agent in whose run it is. */
  readonly agent: string;
  readonly turn: number;
  /** The step, from 1; 0 for a difference outside steps. */
  readonly step: number;
  /**
   * - `call`: a tool was called with arguments, or at a place, that the recording does not have
   * - `model`: the model was called where the recording has no reply: once more, or by a function
   * - `request`: a person was asked, and the recording has no decision about it; or it has one, and
   *   no person was asked (`actual` is null)
   * - `message`: a message has other words
   * - `outcome`: the run ended otherwise, or a turn of it gave another `output`
   */
  readonly kind: 'call' | 'model' | 'request' | 'message' | 'outcome';
  /** What the rerun did; null if it did nothing here. */
  readonly actual: Json;
  /** What the recording has; null if it has nothing here. */
  readonly recorded: Json;
  /** For a call: the recorded call that resembles it most; null if there is none of this tool. */
  readonly nearest: ComparedCall | null;
  /** All of it in one line. */
  readonly text: string;
}

/** What a rerun has found so far. After a divergence, no model is called any more. */
export interface Found {
  divergence: Divergence | null;
  /** The first request that the recording has neither decided nor left undecided. */
  request: AskedRequest | null;
  /** Why the last call of another model failed; null if it replied. */
  failure: unknown;
}

/** A request that the recording does not have, and its divergence. */
export interface AskedRequest {
  /** The id of the run that asks. */
  readonly run: string;
  readonly request: Request;
  readonly divergence: Divergence;
}

/** Creates a divergence, with its line. */
export function createDivergence(
  given: Omit<Divergence, 'text' | 'nearest'> & Partial<Divergence>,
  // The text of a call that the recording has, but not as executed.
  said?: string,
): Divergence {
  const { kind, step, turn, agent, actual, recorded, nearest = null } = given;
  const place = step === 0 ? `turn ${turn}` : `turn ${turn}, step ${step}`;
  const whole = { agent, turn, step, kind, actual, recorded, nearest };
  return { ...whole, text: `${agent}, ${place}: ${said ?? describe(whole)}` };
}

function describe({ kind, actual, recorded, nearest }: Omit<Divergence, 'text'>): string {
  switch (kind) {
    case 'call': {
      const near = recorded === null && nearest !== null ? nearestText(actual, nearest) : '';
      return `called ${valueText(actual)}; recorded ${valueText(recorded)}${near}`;
    }
    case 'model':
      return `called the model with ${valueText(actual)}; recorded no reply to this call`;
    case 'request':
      if (actual === null)
        return `asked for no decision about ${valueText(recorded)}; recorded a decision`;
      return `asked for a decision about ${valueText(actual)}; recorded none`;
    case 'message':
      return saidText(actual, recorded);
    case 'outcome':
      if (isObject(actual) && typeof actual['error'] === 'string')
        return `failed: ${visible(listInLine(actual['error']))}; recorded ${valueText(recorded)}`;
      return `ended as ${valueText(actual)}; recorded ${valueText(recorded)}`;
  }
}

function nearestText(actual: Json, nearest: ComparedCall): string {
  const isSame = canonicalJson(actual) === canonicalJson({ ...nearest });
  return isSame ? ' here, but the same call elsewhere' : `; nearest: ${callText(nearest)}`;
}

/** Describes a call that a rerun would execute, although the recorded one was denied. */
export function deniedText(call: ComparedCall): string {
  return `would execute ${callText(call)}; in the recording, it was denied`;
}

/** Describes a call that a rerun treats otherwise: its rules or its tool have changed, not the model. */
export function treatedText(
  does: 'ask about' | 'deny',
  call: ComparedCall,
  was = 'allowed',
): string {
  return `would ${does} ${callText(call)}; in the recording, it was ${was}`;
}

/** Returns whether a result says that a call was denied. */
export function isDenial(message: ToolMessage): boolean {
  return failureOf(message)?.type === 'denied';
}

/** Returns the calls of the same tool that resembles a call most; null if there is none. */
export function nearestCall(
  call: ComparedCall,
  others: readonly ComparedCall[],
): ComparedCall | null {
  const text = canonicalJson(call.arguments);
  const ranked = others
    .filter(({ tool }) => tool === call.tool)
    .map((one) => ({ one, far: distance(text, canonicalJson(one.arguments)) }))
    .toSorted((a, b) => a.far - b.far);
  return ranked[0]?.one ?? null;
}

/** What is compared: with the recorded model all words, with another one only what it does. */
type Compared = 'all' | 'calls';

/** Returns the first difference between two recordings of one run; null if there is none. */
export function firstDifference(
  recorded: Recording,
  actual: Recording,
  compared: Compared,
): Divergence | null {
  const found = recorded.runs.flatMap((run, index): readonly Divergence[] => {
    const other = actual.runs.find(({ id }) => id === run.id);
    const difference =
      other === undefined && index > 0
        ? nodeCall(run, recorded)
        : differenceOf(
            sideOf(run, recorded, compared),
            sideOf(other ?? notBegun(run), actual, compared),
            compared,
          );
    return difference === null ? [] : [difference];
  });
  const [first] = found;
  if (first !== undefined) return first;
  const added = actual.runs.find(({ id }) => recorded.runs.every((one) => one.id !== id));
  const call = added === undefined ? null : nodeCall(added, actual);
  if (call === null) return null;
  return createDivergence({ ...call, actual: call.recorded, recorded: call.actual });
}

/**
 * Returns the difference of a run that only one of two recordings has, if a node of a graph has called
 * it. Null for any other: its call is a message, and a difference of its caller.
 */
function nodeCall(run: RecordedRun, { runs }: Recording): Divergence | null {
  for (const { agent, facts, messages } of runs) {
    const fact = facts.find((one) => one.type === 'called' && one.run === run.id);
    if (fact?.type !== 'called') continue;
    const isSaid = messages.some(
      (one) => one.role === 'assistant' && one.calls?.some(({ id }) => id === fact.call),
    );
    if (isSaid) return null;
    const { message, input, args } = run.input;
    const given = {
      ...(message !== undefined && { message }),
      ...(input && { input }),
      ...(args && { args }),
    };
    const recorded = { tool: run.agent, arguments: given };
    const { turn = 1 } = messages.findLast(({ at }) => at <= fact.at) ?? {};
    return createDivergence({ agent, turn, step: 0, kind: 'call', actual: null, recorded });
  }
  return null;
}

/** Returns the outcome of a run, or, while it is open, of its last turn. */
export function lastOutcome({ outcome, lastTurn = null }: RecordedRun): Outcome | null {
  return outcome ?? lastTurn;
}

/** Returns the run as one that no worker has begun. */
function notBegun(run: RecordedRun): RecordedRun {
  return { ...run, messages: [], facts: [], outcome: null, lastTurn: null };
}

/** Returns the one of two differences that was first, as far as one run shows it. */
export function earlierOf(
  found: Divergence | null,
  compared: Divergence | null,
): Divergence | null {
  if (found === null || compared === null || found.agent !== compared.agent)
    return found ?? compared;
  return isBefore(compared, found) ? compared : found;
}

/**
 * Whether a difference is at an earlier step. One in how the run ended comes after all steps, and that
 * of a call outside steps may be a consequence of any other in its turn.
 */
function isBefore(one: Divergence, other: Divergence): boolean {
  if (one.kind === 'outcome') return false;
  if (one.kind === 'call' && one.step === 0) return one.turn < other.turn;
  return one.turn < other.turn || (one.turn === other.turn && one.step < other.step);
}

/** Returns the undecided request, or the other difference if that one came first. */
export function requestOrEarlier(
  request: Divergence | null,
  other: Divergence | null,
): Divergence | null {
  if (request === null || other === null || request.agent !== other.agent) return request ?? other;
  const isSameStep = request.turn === other.turn && request.step === other.step;
  const isReply =
    other.kind === 'message' &&
    [other.actual, other.recorded].some((one) => isObject(one) && one['role'] === 'assistant');
  return isBefore(other, request) || (isSameStep && isReply) ? other : request;
}

/** A run, and what is compared of it. */
interface Side {
  readonly run: RecordedRun;
  /** Its messages, and the calls in them. */
  readonly said: readonly Line[];
  /** The calls that nodes of a graph made. */
  readonly made: readonly Line[];
}

function sideOf(run: RecordedRun, recording: Recording, compared: Compared): Side {
  const made = nodeCalls(run, recording).map(({ turn, ...call }): Line => ({
    turn,
    step: 0,
    kind: 'call',
    value: { ...call },
  }));
  return { run, said: linesOf(run.messages, compared), made };
}

function differenceOf(recorded: Side, actual: Side, compared: Compared): Divergence | null {
  const [before, after] = [recorded.run, actual.run];
  // An older recording does not say how the last turn of an open run ended.
  const isUnknown = before.endedAt === null && before.lastTurn === undefined;
  // The reason for which it failed says more than what it therefore did not do.
  const isCut = hasFailed(after) && !hasFailed(before) && !isUnknown;
  const [said, made] = (['said', 'made'] as const).map((lines) =>
    lineDifference(before.agent, { before: recorded[lines], after: actual[lines], isCut }),
  );
  const first = said && made && made.turn < said.turn ? made : (said ?? made ?? null);
  if (first !== null || (isUnknown && after.outcome === null)) return first;
  return endDifference(before, after, compared);
}

/** Returns the first line that differs; null if none does. `isCut`: lines may be missing at the end. */
function lineDifference(
  agent: string,
  {
    before,
    after,
    isCut,
  }: { readonly before: readonly Line[]; readonly after: readonly Line[]; readonly isCut: boolean },
): Divergence | null {
  for (let at = 0; at < Math.max(before.length, after.length); at += 1) {
    const [one, other] = [before[at], after[at]];
    if (one !== undefined && other !== undefined && sameLine(one, other)) continue;
    if (other === undefined && isCut) return null;
    const { turn = 0, step = 0, kind = 'message' } = other ?? one ?? {};
    const calls = before.map(({ value }) => value).filter(isComparedCall);
    const isDenied = other?.denied !== undefined && one?.denied === undefined;
    return createDivergence(
      {
        agent,
        turn,
        step,
        kind,
        actual: other?.value ?? null,
        recorded: one?.value ?? null,
        ...(other !== undefined &&
          isComparedCall(other.value) && { nearest: nearestCall(other.value, calls) }),
      },
      isDenied ? treatedText('deny', other.denied) : undefined,
    );
  }
  return null;
}

/** Returns the difference in how a run, or one of its turns, ended; null if there is none. */
function endDifference(
  recorded: RecordedRun,
  actual: RecordedRun,
  compared: Compared,
): Divergence | null {
  const { agent } = recorded;
  const turn = recorded.messages.at(-1)?.turn ?? 1;
  const [end, newEnd] = [recorded, actual].map((run) => endOf(run, compared));
  const isSame = canonicalJson(end ?? null) === canonicalJson(newEnd ?? null);
  const other = compared === 'all' ? otherOutput(recorded, actual) : null;
  if (other !== null && (isSame || other.turn < turn))
    return createDivergence({ agent, step: 0, kind: 'outcome', ...other });
  if (isSame || end === undefined || newEnd === undefined) return null;
  const error = hasFailed(actual) ? lastOutcome(actual)?.error : undefined;
  return createDivergence({
    agent,
    turn,
    step: 0,
    kind: 'outcome',
    actual: isObject(newEnd) && error !== undefined ? { ...newEnd, error } : newEnd,
    recorded: end,
  });
}

/**
 * Returns the first turn whose `output` differs: the value that a parser, a schema, or a function has
 * made, and that no message need have. Returns null if there is none.
 */
function otherOutput(
  recorded: RecordedRun,
  actual: RecordedRun,
): Pick<Divergence, 'turn' | 'actual' | 'recorded'> | null {
  const isOld = recorded.outputs === undefined;
  const [before, after] = [recorded, actual].map((run) => outputsOf(run, isOld));
  const turns = [...new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])])];
  for (const turn of turns.toSorted((one, other) => one - other)) {
    const [one = null, other = null] = [before?.get(turn), after?.get(turn)];
    if (canonicalJson(one) === canonicalJson(other)) continue;
    return { turn, actual: { output: other }, recorded: { output: one } };
  }
  return null;
}

/** Returns the outputs of a run by their turns. `isLast`: only that of its last turn. */
function outputsOf(run: RecordedRun, isLast: boolean): ReadonlyMap<number, Json> {
  if (!isLast) return new Map(run.outputs?.map(({ turn, output }) => [turn, output]));
  const output = lastOutcome(run)?.output ?? null;
  return new Map(output === null ? [] : [[run.messages.at(-1)?.turn ?? 1, output]]);
}

function hasFailed(run: RecordedRun): boolean {
  return lastOutcome(run)?.status === 'failed';
}

function endOf(run: RecordedRun, compared: Compared): Json {
  const outcome = lastOutcome(run);
  if (outcome === null) return null;
  const { status, reason, answer } = outcome;
  return compared === 'all' ? { status, reason, answer } : { status, reason };
}

interface Line {
  readonly turn: number;
  readonly step: number;
  readonly kind: 'call' | 'message';
  readonly value: Json;
  /** The call of a result that says that it was denied. */
  readonly denied?: ComparedCall;
}

function sameLine(one: Line, other: Line): boolean {
  return one.kind === other.kind && canonicalJson(one.value) === canonicalJson(other.value);
}

/** Returns what was said and called, in order, without times, ids, and what providers add. */
function linesOf(messages: readonly Message[], compared: Compared): readonly Line[] {
  return messages.flatMap((message): readonly Line[] => {
    // A rerun performs no undo, so its model gets no such note.
    if (isUndoNote(message)) return [];
    const { turn, step, role, text } = message;
    const calls = role === 'assistant' ? (message.calls ?? []) : [];
    const called = calls.map((call): Line => ({
      turn,
      step,
      kind: 'call',
      value: comparedCall(call),
    }));
    const isSaid = compared === 'all' && (text !== '' || calls.length === 0);
    const of =
      message.role === 'tool' && isDenial(message) ? findCall(message.callId, messages) : undefined;
    const denied = of && { denied: comparedCall(of) };
    return isSaid
      ? [{ turn, step, kind: 'message', value: { role, text }, ...denied }, ...called]
      : called;
  });
}
