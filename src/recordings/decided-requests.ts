import { holds } from '../core/definition/predicate.js';
import { nodeOfCall } from '../core/state/turn-definition.js';
import { canonicalJson, isObject, parseJson } from '../core/text/json.js';
import { type Message, parseCallId } from '../core/transcript/messages.js';
import type { Request } from '../core/transcript/request.js';
import { callPairs } from '../core/transcript/transcript.js';
import { comparedCall } from './divergence-text.js';
import {
  type AskedRequest,
  type Divergence,
  createDivergence,
  isDenial,
  nearestCall,
  treatedText,
} from './divergence.js';
import {
  type FactOf,
  type RecordedFact,
  type RecordedRequest,
  type RecordedRun,
  type Recording,
  factsOf,
  subjectOf,
} from './recording.js';

/** A decision, or a message that decided. */
type DecisionFact = FactOf<'decision' | 'message'>;

/** A recorded decision, and whether the rerun has asked for it. */
export interface PlacedDecision {
  readonly run: RecordedRun;
  readonly fact: DecisionFact;
  isUsed: boolean;
}

/** Returns the decisions of all runs, in the order in which they were made. */
export function decisionsOf(recording: Recording): readonly PlacedDecision[] {
  const decisions = factsOf(recording, 'decision');
  const messages = factsOf(recording, 'message').filter(({ run, fact }) => decides(fact, run));
  return [...decisions, ...messages]
    .map(({ run, fact }) => ({ run, fact, isUsed: false }))
    .toSorted((one, other) => one.fact.at - other.fact.at);
}

/**
 * Whether a message decided. Those of older versions do not say so: one that names a request did, unless
 * the request was decided in another way.
 */
function decides(fact: FactOf<'message'>, { facts }: RecordedRun): boolean {
  if (fact.about !== undefined) return true;
  if (!isObject(fact.message.answers)) return false;
  return !facts.some((one) => one.type === 'decision' && requestOf(one) === requestOf(fact));
}

/** Returns the id of the request that was decided, if the decision names it. */
export function requestOf(fact: DecisionFact): string | undefined {
  if (fact.type === 'decision') return fact.decision.request;
  const { answers } = fact.message;
  return typeof answers === 'object' ? answers.request : undefined;
}

/**
 * Returns the decisions about plans and questions of a graph's nodes. No call that is compared stands
 * for such a request, as one does for an approval.
 */
export function ofNodes(decisions: readonly PlacedDecision[]): readonly PlacedDecision[] {
  return decisions.filter(({ fact: { about } }) => isOfNode(about));
}

function isOfNode(about: RecordedRequest | undefined): boolean {
  return about?.tool !== undefined && nodeOfCall({ name: about.tool }) !== null;
}

/** What the agent asks for by its rules, tools, and limits, and not because of what went wrong. */
const CONSENT: readonly unknown[] = ['approval', 'plan', 'question', 'limit'];

/**
 * Returns the difference for a recorded request that the rerun did not raise; null if there is
 * none.
 */
export function unasked(decisions: readonly PlacedDecision[]): Divergence | null {
  const skipped = decisions.find(({ run, fact, isUsed }) => {
    // A rerun undoes nothing.
    if (isUsed || !CONSENT.includes(fact.about?.kind) || fact.about?.undo) return false;
    // A rerun connects to no MCP server that could ask.
    if (run.facts.some((one) => isServerAsk(one, fact))) return false;
    // Of several decisions about one request, only one closed it.
    const isClosed = decisions.some(
      (other) =>
        other.isUsed && other.run.id === run.id && requestOf(other.fact) === requestOf(fact),
    );
    return !isClosed && !isAfterRevoke(fact, run);
  });
  if (skipped === undefined) return null;
  const { run, fact } = skipped;
  const { kind = '', tool, arguments: args = '', shown } = fact.about ?? {};
  const call = tool === undefined ? null : comparedCall({ name: tool, arguments: args });
  const isCalledIn = (message: Message): boolean =>
    message.role === 'assistant' &&
    (message.calls ?? []).some((one) => canonicalJson(comparedCall(one)) === canonicalJson(call));
  const place =
    run.messages.find((one) => isCalledIn(one)) ?? run.messages.findLast(({ at }) => at < fact.at);
  const { turn, step } = place ?? { turn: 1, step: 0 };
  const recorded = (isOfNode(fact.about) ? shown : call) ?? shown ?? kind;
  return createDivergence({
    agent: run.agent,
    turn,
    step,
    kind: 'request',
    actual: null,
    recorded,
  });
}

/** Whether a grant had been revoked before: a rerun does not end it, and so asks about fewer calls. */
function isAfterRevoke(fact: DecisionFact, { facts }: RecordedRun): boolean {
  const before = facts.slice(0, facts.indexOf(fact));
  return before.some((one) => one.type === 'control' && one.name === 'revoke');
}

/**
 * Returns the approval whose grant covered the call of a request in the recording, which did not raise it: a
 * rerun may ask about a call before it comes to the decision with the grant. Null if there is none, and where rules
 * name who may decide: those of the rerun may not allow who gave the grant.
 */
export function grantOf(request: Request, { facts }: RecordedRun): FactOf<'decision'> | null {
  const subject = subjectOf(request);
  if (request.kind !== 'approval' || subject.undo || request.deciders?.length) return null;
  const executed = facts.findIndex(
    (one) => one.type === 'result' && one.call.id === request.call && hasEnded(one.result),
  );
  const before = facts.slice(0, Math.max(executed, 0));
  if (before.some((one) => one.type === 'control' && one.name === 'revoke')) return null;
  const grants = before.filter((one) => one.type === 'decision');
  return grants.find((one) => covers(one, subject)) ?? null;
}

function hasEnded(result: unknown): boolean {
  return isObject(result) && (typeof result['ok'] === 'boolean' || result['ok'] === 'unknown');
}

/** Whether an approval has a grant that holds for what a request is about. */
function covers({ decision, about }: FactOf<'decision'>, subject: RecordedRequest): boolean {
  const { as, grant } = decision;
  if (as !== 'approve' || grant === undefined || about?.tool !== subject.tool) return false;
  const { arguments: args = '' } = subject;
  if (grant.scope === 'same_call') return about?.arguments === args;
  return grant.where === undefined || holds(grant.where, parseJson(args));
}

/** Whether a recorded result is that of an MCP server that asked what the decision may be about. */
function isServerAsk(one: RecordedFact, { about }: DecisionFact): boolean {
  if (one.type !== 'result' || about?.kind !== 'question') return false;
  const { call, result } = one;
  return call.name === about.tool && isObject(result) && result['ok'] === 'input_required';
}

/** Returns the difference of a request that no recorded decision is about. */
export function undecided(
  request: Request,
  {
    agent,
    open,
    messages,
  }: {
    readonly agent: string;
    readonly open: readonly DecisionFact[];
    readonly messages: readonly Message[];
  },
): Divergence {
  const { turn, step } = parseCallId({ id: request.call ?? '' });
  const place = { agent, turn: Math.max(turn, 1), step };
  const { tool, arguments: args = '' } = subjectOf(request);
  const others = open.flatMap(({ about }) =>
    about?.tool === undefined || about.kind !== request.kind || about.tool !== tool
      ? []
      : [comparedCall({ name: about.tool, arguments: about.arguments ?? '' })],
  );
  const isNew = { ...place, kind: 'request', actual: request.shown, recorded: null } as const;
  if (request.kind === 'approval' && tool !== undefined) {
    const call = comparedCall({ name: tool, arguments: args });
    const was = treatmentOf(call, messages);
    if (was !== null) return createDivergence(isNew, treatedText('ask about', call, was));
  }
  const [recorded] = others;
  if (tool === undefined || recorded === undefined) return createDivergence(isNew);
  const actual = comparedCall({ name: tool, arguments: args });
  const nearest = nearestCall(actual, others);
  return createDivergence({ ...place, kind: 'call', actual, recorded, nearest });
}

/** Returns how the same call ended in the recording, which did not ask about it; null if it has none. */
function treatmentOf(
  compared: ReturnType<typeof comparedCall>,
  messages: readonly Message[],
): 'allowed' | 'denied' | null {
  const text = canonicalJson(compared);
  const same = callPairs(messages).find(({ call }) => canonicalJson(comparedCall(call)) === text);
  if (same === undefined) return null;
  return same.result !== null && isDenial(same.result) ? 'denied' : 'allowed';
}

/** Returns the difference of a request at its place: that of its call, or after the last message. */
export function placedRequest(
  { run: id, request, divergence }: AskedRequest,
  { runs }: Recording,
): Divergence {
  if (request.call !== undefined) return divergence;
  const messages = runs.find((run) => run.id === id)?.messages ?? [];
  const last = messages.findLast(({ at }) => at <= request.raisedAt);
  return last === undefined
    ? divergence
    : createDivergence({ ...divergence, turn: last.turn, step: last.step });
}

/** Returns whether the recorded run raised the same request and left it undecided. */
export function wasLeftUndecided(request: Request, run: RecordedRun | undefined): boolean {
  const subject = canonicalJson({ ...subjectOf(request) });
  return run?.undecided?.some((one) => canonicalJson({ ...one }) === subject) === true;
}

/** Whether a decision was made about a request like this one: for another one, consent is not known. */
export function isAbout(request: Request, fact: DecisionFact): boolean {
  const { about } = fact;
  if (about === undefined) return requestOf(fact) === request.id;
  return canonicalJson({ ...about }) === canonicalJson({ ...subjectOf(request) });
}
