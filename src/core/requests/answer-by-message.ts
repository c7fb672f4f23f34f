import type { AnsweredRequest, Ask } from '../input/inbox.js';
import {
  planAnswerFault,
  planWords,
  readPlanAnswer,
  readYesOrNo,
  shownActions,
} from '../plan/confirm-plan.js';
import { REMEMBERED_DECISIONS, nodeIn } from '../state/decisions.js';
import type { RunState } from '../state/state.js';
import { currentNode } from '../state/turn-definition.js';
import { type AskingWork, callOfWork, isUndo } from '../state/work.js';
import { noReason } from '../text/refusal-words.js';
import { show } from '../text/text.js';
import { type Decision, OFFERED } from '../transcript/request.js';
import { askingWork } from './open-requests.js';
import {
  type Refused,
  checkingProblem,
  expiryProblem,
  newDecisionProblem,
  requestProblem,
} from './refusal.js';

/** The parts of a message that determine whether it decides. */
type Said = Pick<Ask, 'message' | 'answers' | 'sentAt' | 'by' | 'mode'>;

interface Arrival {
  /** Unix time in ms; null if the times were checked when the message arrived. */
  readonly now: number | null;
  /** A version without `SEMANTICS` received the message: see `keepsEarlierMeaning`. */
  readonly earlier?: boolean;
  /** The history has the message, so it keeps the meaning that it had when it came. */
  readonly recorded?: true;
}

/** What a message is to the requests of a run. */
export type MessageAnswer =
  /** An ordinary message. */
  | { readonly type: 'message' }
  | { readonly type: 'decides'; readonly work: AskingWork; readonly decision: Decision }
  | { readonly type: 'refused'; readonly refused: Refused };

const MESSAGE: MessageAnswer = { type: 'message' };

/**
 * Returns whether a message decides about a request, is an ordinary message, or is refused. It
 * decides only where its sender may decide (`answers`) and about what it was sent for: about the
 * request that it names with its digest, or else about a question of the graph that is still open
 * in the form that the sender can have seen. Words that are close to an answer never become a turn
 * while a person is asked.
 */
export function messageAnswer(state: RunState, said: Said, arrival: Arrival): MessageAnswer {
  const { message = '', answers } = said;
  if (arrival.earlier === true) return earlierAnswer(state, said);
  if (typeof answers === 'object') return boundAnswer(state, { ...said, answers }, arrival);
  const open = askingWork(state);
  const [first] = open;
  if (first === undefined) return MESSAGE;
  const asked = questionOf(state, open);
  const decision = asked && decisionIn(state, asked, said);
  if (asked !== undefined && decision) {
    const refused =
      answers === false
        ? mayNot(asked)
        : ((arrival.now === null ? null : expiryProblem(asked.request, arrival.now)) ??
          unboundProblem(state, asked, { ...said, ...arrival }));
    return refused === null
      ? { type: 'decides', work: asked, decision }
      : { type: 'refused', refused };
  }
  const isPlan = asked?.request.kind === 'plan' && said.mode !== 'steer';
  if (!isPlan && !isClose(message)) return MESSAGE;
  return {
    type: 'refused',
    refused: answers === false ? mayNot(first) : help(state, open, message),
  };
}

/**
 * Returns what a message was to versions without `SEMANTICS`: every clear answer to a question of
 * the graph decided, and only a plan refused other words.
 */
function earlierAnswer(state: RunState, said: Said): MessageAnswer {
  const asked = questionOf(state, askingWork(state));
  if (asked === undefined) return MESSAGE;
  const decision = decisionIn(state, asked, said);
  if (decision !== null) return { type: 'decides', work: asked, decision };
  if (asked.request.kind !== 'plan' || said.mode === 'steer') return MESSAGE;
  return { type: 'refused', refused: help(state, [asked], said.message ?? '') };
}

/** Returns the decision of a message that names what it answers. */
function boundAnswer(
  state: RunState,
  said: Said & { readonly answers: AnsweredRequest },
  arrival: Arrival,
): MessageAnswer {
  const { request, digest } = said.answers;
  const wrong = requestProblem(state, { request, digest }, arrival.now ?? 0);
  if (wrong !== null) return { type: 'refused', refused: wrong };
  const open = askingWork(state);
  const work = open.find((one) => one.request.id === request);
  if (work === undefined) return MESSAGE;
  if (isReserved(state, work)) return { type: 'refused', refused: mayNot(work) };
  const decision = decisionIn(state, work, said);
  if (decision === null) {
    return { type: 'refused', refused: help(state, [work], said.message ?? '') };
  }
  // A message that arrives again is recognized by its id before, so this is a new decision.
  const refused = newDecisionProblem(state, { ...decision, digest }, arrival.now ?? 0);
  return refused === null ? { type: 'decides', work, decision } : { type: 'refused', refused };
}

/** Returns the open question of a `confirm` node, if a message may answer it. */
function questionOf(state: RunState, open: readonly AskingWork[]): AskingWork | undefined {
  if (currentNode(state)?.kind !== 'confirm') return undefined;
  return open.find(
    (work) =>
      (work.request.kind === 'question' || work.request.kind === 'plan') &&
      work.proposal === undefined &&
      !isReserved(state, work),
  );
}

/** A message does not prove its sender, so it never decides what only certain people may decide. */
function isReserved({ config }: RunState, { request }: AskingWork): boolean {
  return config.decisions?.mayDecide === true || (request.deciders ?? []).length > 0;
}

/** Returns the decision that a text makes about a request; null if it makes none. */
function decisionIn(
  state: RunState,
  work: AskingWork,
  { message = '', by }: Said,
): Decision | null {
  const { id, kind } = work.request;
  const base = { request: id, digest: '', ...(by !== undefined && { by }) };
  const call = callOfWork(state, work.name);
  if (call === undefined || isUndo(work)) return null;
  switch (kind) {
    case 'plan':
      return readPlanAnswer(message, shownActions(call.arguments) ?? []) === null
        ? null
        : { ...base, as: 'answer', result: message };
    case 'question':
      if (currentNode(state)?.kind !== 'confirm' || readYesOrNo(message) === null) return null;
      return { ...base, as: 'answer', result: message };
    case 'approval':
    case 'safety_check': {
      const word = readYesOrNo(message);
      return word === null ? null : { ...base, as: word === 'yes' ? 'approve' : 'deny' };
    }
    default:
      return null;
  }
}

/**
 * Returns why a message that does not name what it answers may be about another form of the
 * question: it was sent before this form was raised, or by a clock that does not tell, or another
 * person has answered the form before.
 */
function unboundProblem(
  { decisions = [], turn }: RunState,
  { request, name }: AskingWork,
  { sentAt, by, now, recorded }: Said & Arrival,
): Refused | null {
  const refused = (why: string): Refused => ({
    reason: 'unbound',
    message: `answers: expected what the message answers, because ${why}; ${bindTo(request.id)}`,
  });
  if (sentAt !== undefined && sentAt < request.raisedAt) {
    return refused(
      `by its sender's clock it was sent ${inSeconds(request.raisedAt - sentAt)} before request ${request.id} was raised`,
    );
  }
  if (sentAt !== undefined && now !== null && sentAt > now + MAX_AHEAD_MS) {
    return refused(`its sender's clock is ahead by ${inSeconds(sentAt - now)}`);
  }
  const node = nodeIn(name);
  const known = recorded ? decisions.slice(-REMEMBERED_DECISIONS) : decisions;
  const before = known.findLast(
    ({ what, call, at, refused: rejected }) =>
      what === 'resolve' && rejected === undefined && at >= turn.startedAt && nodeIn(call) === node,
  );
  if (before === undefined || before.by === by) return null;
  return refused(
    `request ${request.id} has replaced one that ${show(before.by ?? 'another person')} answered`,
  );
}

/**
 * A message cannot be sent after it arrived. A clock that says so does not tell whether the message
 * was sent before a request was raised.
 */
const MAX_AHEAD_MS = 10_000;

function inSeconds(ms: number): string {
  return `${Math.ceil(ms / 1_000)} s`;
}

function bindTo(request: string): string {
  return `read request ${request} and give answers: {"request", "digest"}`;
}

function mayNot({ request: { id } }: AskingWork): Refused {
  const message = `message: the run waits for a decision about request ${id}, and this message may not decide; a person decides about the request itself`;
  return { reason: 'not_a_decider', message };
}

/** Returns what can be answered, for words that are no answer, or that do not say to what. */
function help(state: RunState, asking: readonly AskingWork[], text: string): Refused {
  const open = asking.filter(({ proposal }) => proposal === undefined);
  const [first] = asking;
  const checking = first && checkingProblem(first, 'message');
  if (checking && open.length === 0) return checking;
  const each = open.map((work) => `request ${work.request.id}: ${expectedOf(state, work)}`);
  const [unbound] = open.filter((work) => needsDigest(state, work));
  const got = `${show(text)}${unbound && readYesOrNo(text) !== null ? ' without it' : ''}`;
  const fix = unbound === undefined ? '' : `; ${bindTo(unbound.request.id)}`;
  const offered = open.flatMap(({ request }): readonly string[] => OFFERED[request.kind]);
  const reason = planFault(state, open, text) ?? (offered.includes('deny') ? noReason(text) : '');
  const message = `message: the run waits for an answer to ${each.join('; ')}, got ${got}${reason}${fix}`;
  return { reason: 'unclear', message };
}

/** Returns what is wrong with a text as the answer to the one plan that is open; null if that is not known. */
function planFault(state: RunState, open: readonly AskingWork[], text: string): string | null {
  const [work, ...others] = open;
  if (work?.request.kind !== 'plan' || others.length > 0 || isReserved(state, work)) return null;
  const actions = shownActions(callOfWork(state, work.name)?.arguments ?? '') ?? [];
  const fault = planAnswerFault(text, actions);
  return fault === null ? null : `: ${fault}`;
}

function expectedOf(state: RunState, work: AskingWork): string {
  const { kind } = work.request;
  if (needsDigest(state, work)) return 'expected "yes" or "no" with the digest of what was shown';
  if (!isReserved(state, work) && !isUndo(work)) {
    if (kind === 'plan') return planWords(null);
    if (kind === 'question' && currentNode(state)?.kind === 'confirm')
      return 'expected "yes" or "no"';
  }
  return `expected a decision about the request itself (${kind})`;
}

/** Whether a message can decide a request only with its digest. */
function needsDigest(state: RunState, work: AskingWork): boolean {
  const { kind } = work.request;
  return (
    (kind === 'approval' || kind === 'safety_check') && !isReserved(state, work) && !isUndo(work)
  );
}

const CLOSE: ReadonlySet<string> = new Set(
  (
    'yes y yeah yea yep yup ja jo jawohl oui si sí sim da да はい 是 ok okay okey sure fine alright agreed agree ' +
    'absolutely definitely certainly confirm confirmed proceed approve approved accept accepted allow allowed 👍 👌 ✅ ' +
    'no n nope nah nay nein non não nee нет nej cancel cancelled canceled abort stop deny denied reject rejected ' +
    "refuse refused decline declined none nothing don't dont 👎 ❌ " +
    'maybe perhaps possibly probably vielleicht quizás unsure undecided later hmm'
  ).split(' '),
);
const CLOSE_PHRASES: readonly string[] = [
  'go ahead',
  'do it',
  'please do',
  'sounds good',
  'looks good',
  'not now',
  'not yet',
  'not sure',
];
const PLAN_FIRST: ReadonlySet<string> = new Set([
  'some',
  'only',
  'all',
  'without',
  'except',
  'edit',
  'change',
]);
/** A longer text says more than an answer. */
const MAX_CLOSE_CHARACTERS = 60;
const MAX_CLOSE_WORDS = 5;

/** Whether a text is close to a yes, a no, or a maybe, such as "yes please" or "ja". */
function isClose(text: string): boolean {
  if (text.length > MAX_CLOSE_CHARACTERS) return false;
  const words = wordsOf(text);
  const [first = '', second = ''] = words;
  if (!CLOSE.has(first) && !CLOSE_PHRASES.includes(`${first} ${second}`)) return false;
  return words.length <= (text.trimEnd().endsWith('?') ? 2 : MAX_CLOSE_WORDS);
}

/** Whether a text may be an answer to some request: the client then records when it was sent. */
export function mayAnswer(text: string): boolean {
  const [first = ''] = wordsOf(text.slice(0, MAX_CLOSE_CHARACTERS));
  return CLOSE.has(first) || PLAN_FIRST.has(first) || /^a\d/.test(first);
}

function wordsOf(text: string): readonly string[] {
  return text
    .toLowerCase()
    .split(/[\s.,!?;:…"()[\]-]+/)
    .filter((word) => word !== '');
}
