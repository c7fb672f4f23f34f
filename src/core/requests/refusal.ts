import { isTooDeep, tooDeep, isObject } from '../text/json.js';
import { formatDuration, show } from '../text/text.js';
import { decidedBefore } from '../state/decisions.js';
import type { RunState } from '../state/state.js';
import { decisionShape } from '../transcript/message-shapes.js';
import { guard } from '../text/shape.js';
import {
  harmlessActions,
  planAnswerFault,
  readPlanAnswer,
  shownActions,
  someText,
  unclearAnswer,
} from '../plan/confirm-plan.js';
import { checkLimits } from '../input/limits.js';
import { deciderProblem } from '../definition/rules.js';
import { peopleBehind } from '../state/consent.js';
import { nodeOfCall } from '../state/turn-definition.js';
import type { AskingWork } from '../state/work.js';
import {
  type Decision,
  DECISION_FIELDS,
  decisionsWith,
  MAX_DECISIONS,
  MAX_NOTE_CHARACTERS,
  type RefusalReason,
  type Request,
} from '../transcript/request.js';
import { type DecidingName, SHOWN_DIGITS, WHOLE_DIGEST, fixFor, withFixNow } from './commands.js';
import { askingWork, openRequest } from './open-requests.js';
import { fieldNames } from './server-ask.js';

/**
 * Maximum characters of a person's result as JSON, because it goes unchanged into the history and
 * the prompt.
 */
const MAX_RESULT_CHARACTERS = 32_000;
const MAX_ARGUMENT_CHARACTERS = 256_000;

/** A decision that the run refuses. */
export interface Refused {
  readonly reason: RefusalReason;
  /** For people: the field, the value, and the fix. */
  readonly message: string;
}

/** The inputs of a refusal, in addition to the state. */
interface Arrival {
  /** The id of the update. */
  readonly update: string;
  /** Unix time in ms. */
  readonly now: number;
}

/**
 * Returns why a run refuses a decision, or a list of them as a whole; null if it accepts them. This
 * checks only the state and the pinned data; the rest is checked on a worker as a proposal.
 */
export function decisionProblem(state: RunState, given: unknown, arrival: Arrival): Refused | null {
  if (decidedBefore(state.decisions, arrival.update) !== undefined) return null;
  if (state.work.some(({ proposal }) => proposal?.id === arrival.update)) return null;
  return newDecisionProblem(state, given, arrival.now);
}

/** Like `decisionProblem`, for what the run has certainly not received before. */
export function newDecisionProblem(state: RunState, given: unknown, now: number): Refused | null {
  const decisions: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (decisions.length === 0 || decisions.length > MAX_DECISIONS) {
    return malformed(`resolve: expected 1 to ${MAX_DECISIONS} decisions, got ${decisions.length}`);
  }
  const seen = new Set<string>();
  for (const [index, decision] of decisions.entries()) {
    const path = Array.isArray(given) ? `resolve[${index}]` : 'resolve';
    const problem = oneProblem(state, decision, { now, path, seen });
    if (problem !== null) return problem;
  }
  return null;
}

function oneProblem(
  state: RunState,
  given: unknown,
  { now, path, seen }: Pick<Arrival, 'now'> & { readonly path: string; readonly seen: Set<string> },
): Refused | null {
  const shape = isObject(given)
    ? decisionShape(given, path)
    : `${path}: ${EXPECTED}, got ${show(given)}`;
  if (shape !== null || !isDecision(given)) return malformed(shape ?? `${path}: ${EXPECTED}`);
  const decision = given;
  const { request: id, as, by, door } = decision;
  // Only an interface verifies groups.
  const groups = door === undefined ? undefined : decision.groups;
  if (seen.has(id)) {
    return malformed(`${path}.request: expected each request once, got "${id}" again`);
  }
  seen.add(id);
  const wrong = requestProblem(state, decision, now);
  const work = askingWork(state).find((one) => one.request.id === id);
  const request = openRequest(state, { id, run: 'RUN' });
  if (wrong !== null || work === undefined || request === undefined) {
    return wrong ?? unknownProblem(state, id);
  }
  if (!request.decisions.includes(as)) {
    const message = `as: expected one of ${request.decisions.join(', ')} for ${id}, got "${as}"`;
    return { reason: 'not_offered', message };
  }
  const notDecider = deciderProblem(request.deciders, {
    by,
    groups,
    ...peopleBehind(state, work),
  });
  if (notDecider !== null) return { reason: 'not_a_decider', message: notDecider };
  return checkingProblem(work, 'request') ?? contentProblem(decision, request);
}

/** Returns the refusal of another decision about work of which one is being checked; null without one. `field`: where it is. */
export function checkingProblem(
  { request, proposal }: AskingWork,
  field: 'request' | 'message',
): Refused | null {
  if (proposal === undefined) return null;
  const message = `${field}: another decision about ${request.id} (${proposal.decision.as}) waits for a worker to check it; try again once it is checked`;
  return { reason: 'checking', message };
}

/** How the user of a command can decide about a request. */
export interface Standing {
  readonly name: DecidingName;
  /** Why the user's own name may not decide; null if it may. */
  readonly problem: string | null;
}

/** Returns how the user of a command can decide about a request. `by`: the user's own name. */
export function standingOf(
  state: RunState,
  { id, deciders }: Pick<Request, 'id' | 'deciders'>,
  by: string,
): Standing {
  const people = peopleAround(state, id);
  const problemOf = (name: string) => deciderProblem(deciders, { by: name, ...people });
  const problem = problemOf(by);
  if (problem === null) return { name: 'own', problem };
  const named = deciders.flatMap((one) => (typeof one === 'string' ? [] : one));
  // No person has the empty name, so it stands for everyone whom neither the rules nor the run names.
  const others = [...named, ...people.requesters, ''];
  return { name: others.some((one) => problemOf(one) === null) ? 'other' : 'none', problem };
}

/** Returns the people behind what an open request is about. */
export function peopleAround(state: RunState, id: string): ReturnType<typeof peopleBehind> {
  return peopleBehind(
    state,
    askingWork(state).find(({ request }) => request.id === id),
  );
}

/** The reader of a request, and the time at which it is read. */
export interface Reader {
  /** The name under which the reader's commands decide; absent: unknown. */
  readonly by?: string | undefined;
  /** Unix time in ms. */
  readonly now: number;
}

/**
 * Returns a request whose `fix` would work now for its reader. Where only some people may decide and the
 * reader is unknown, it has `--by NAME`. `run`: the run's workflow id.
 */
export function withFixFor(
  state: RunState,
  request: Request,
  { run, by, now }: Reader & { readonly run: string },
): Request {
  const name = by === undefined ? unknownName(state, request) : standingOf(state, request, by).name;
  return withFixNow(run, request, { now, name });
}

/**
 * Returns a request whose `fix` has `--by NAME` where only some people may decide, since its reader is unknown.
 * It does not depend on the time. `run`: the run's workflow id.
 */
export function withFixOfDecider(state: RunState, request: Request, run: string): Request {
  const name = unknownName(state, request);
  return { ...request, fix: fixFor(run, request, request.decisions, name) };
}

/** Whose name a command for an unknown reader gives. */
function unknownName(state: RunState, request: Request): DecidingName {
  const { name } = standingOf(state, request, '');
  return request.deciders.length > 0 && name === 'own' ? 'other' : name;
}

/**
 * Returns why a run refuses whatever is said about this request: it is not open, or it has another
 * form. `now`: Unix time in ms.
 */
export function requestProblem(
  state: RunState,
  { request: id, digest }: Pick<Decision, 'request' | 'digest'>,
  now: number,
): Refused | null {
  const request = openRequest(state, { id, run: 'RUN' });
  if (request === undefined) return unknownProblem(state, id);
  const expired = expiryProblem(request, now);
  if (expired !== null) return expired;
  if (digest === request.digest) return null;
  const isBegun = digest.length >= SHOWN_DIGITS && request.digest.startsWith(digest);
  const message = isBegun
    ? `digest: ${WHOLE_DIGEST}, got ${show(digest)}`
    : `digest: expected the current digest of ${id}, got ${show(digest)}; review the request again`;
  return { reason: 'wrong_digest', message };
}

/** Returns the problem with a request that has expired by now, whose timer has not fired yet. */
export function expiryProblem(
  { id, expiresAt }: { readonly id: string; readonly expiresAt?: number | null },
  now: number,
): Refused | null {
  if (expiresAt === undefined || expiresAt === null || expiresAt > now) return null;
  const message = `request: ${id} expired ${formatDuration(now - expiresAt, { as: 'rounded' })} ago`;
  return { reason: 'expired', message };
}

const EXPECTED = 'expected {request, digest, as}';
const FIELDS = ['grant', 'actions', 'result', 'arguments'] as const;
const isDecision = guard(decisionShape);

function unknownProblem(state: RunState, id: string): Refused {
  const number = /^r(\d+)$/.exec(id)?.[1];
  if (number !== undefined && Number(number) >= 1 && Number(number) <= (state.requests ?? 0)) {
    const made = state.decisions?.findLast(({ request }) => request === id);
    // The run no longer has the decision, or the reason for the request disappeared by itself.
    if (made?.as === undefined) {
      return { reason: 'decided', message: `request: ${id} is no longer open` };
    }
    if (made.as === 'expired') return { reason: 'expired', message: `request: ${id} has expired` };
    const by = made.by === undefined ? '' : `, by ${made.by}`;
    return {
      reason: 'decided',
      message: `request: ${id} has already been decided (${made.as}${by})`,
    };
  }
  const open = askingWork(state).map(({ request }) => request.id);
  const known = `open: ${open.join(', ') || 'none'}`;
  return {
    reason: 'unknown_request',
    message: `request: expected an open request, got ${show(id)} (${known})`,
  };
}

/**
 * Returns why a request refuses what a decision gives, whoever gives it: fields that it requires, or
 * that only some decisions allow. Null if nothing is wrong.
 */
export function contentProblem(decision: Decision, request: Request): Refused | null {
  const { id, kind, decisions } = request;
  const { as, arguments: given, result, note = '', grant } = decision;
  if (note.length > MAX_NOTE_CHARACTERS) {
    return tooLarge(`note: expected at most ${MAX_NOTE_CHARACTERS} characters, got ${note.length}`);
  }
  const deep = (['arguments', 'result'] as const).find((field) => isTooDeep(decision[field]));
  if (deep !== undefined) return tooLarge(tooDeep(deep));
  const size = result === undefined ? 0 : JSON.stringify(result).length;
  if (size > MAX_RESULT_CHARACTERS) {
    return tooLarge(
      `result: expected at most ${MAX_RESULT_CHARACTERS} characters of JSON, got ${size}; give a summary`,
    );
  }
  const unfit = FIELDS.find(
    (field) => decision[field] !== undefined && DECISION_FIELDS[as] !== field,
  );
  if (unfit !== undefined) {
    const allowed = decisionsWith(unfit)
      .map((one) => `"${one}"`)
      .join(' or ');
    const got = unfit.endsWith('s') ? 'them' : 'it';
    return malformed(`${unfit}: expected only with ${allowed}, got ${got} with "${as}"`);
  }
  // An undo cannot be edited either, because its call has already been made.
  if (grant !== undefined && !decisions.includes('edit')) {
    return malformed(`grant: expected only for the approval of a call, got it for ${id} (${kind})`);
  }
  if (grant?.scope === 'same_call' && grant.where !== undefined) {
    return malformed('grant.where: expected only with scope "tool"; remove it');
  }
  const chosen = chosenProblem(decision, request);
  if (chosen !== null) return chosen;
  if (as === 'answer' && result === undefined)
    return malformed('result: expected the answer, got none');
  if (as === 'answer' && request.form !== undefined) {
    if (isObject(result)) return null;
    const fields = fieldNames(request.form).join(', ');
    return malformed(`result: expected an object with the fields ${fields}, got ${show(result)}`);
  }
  if (as === 'answer' && kind === 'question' && typeof result !== 'string') {
    return malformed(`result: expected a text for a question, got ${show(result)}`);
  }
  const unclear = as === 'answer' ? unclearResult(request, result) : null;
  if (unclear !== null) return malformed(`result: ${unclear}`);
  if (as === 'raise') return raiseProblem(given);
  if (as !== 'edit') return null;
  if (given === undefined)
    return malformed('arguments: expected all arguments of the call, got none');
  const length = JSON.stringify(given).length;
  if (length <= MAX_ARGUMENT_CHARACTERS) return null;
  return tooLarge(
    `arguments: expected at most ${MAX_ARGUMENT_CHARACTERS} characters of JSON, got ${length}`,
  );
}

/** Returns what a node of the graph expects, if it asks and the answer is something else; else null. */
function unclearResult(
  { kind, tool: name = '', arguments: shown }: Request,
  result: Decision['result'],
): string | null {
  const asks = (kind === 'question' || kind === 'plan') && nodeOfCall({ name }) !== null;
  // A worker checks an answer to what is in the blob store.
  if (!asks || shown === undefined || typeof result !== 'string') return null;
  return unclearAnswer(shown, result);
}

/** Checks the actions of a plan that a decision chooses. */
function chosenProblem(
  { as, actions }: Decision,
  { id, arguments: shown = '' }: Request,
): Refused | null {
  if (as !== 'some') return null;
  const known = shownActions(shown) ?? [];
  const ids = known.map((one) => one.id);
  const isKnown =
    actions === undefined || (actions.length > 0 && actions.every((one) => ids.includes(one)));
  if (isKnown && readPlanAnswer(someText(actions), known)?.as === 'some') return null;
  if (actions === undefined) {
    return malformed(
      `actions: expected ids, because ${harmlessActions(known).length === 0 ? 'no' : 'every'} action of ${id} can be executed without approval; give ids, "approve" for all actions, or "deny"`,
    );
  }
  if (actions.length === 0) {
    return malformed(
      `actions: expected ids of ${id} (it has ${ids.join(', ')}), got none, so nothing would be executed; give ids, or "deny"`,
    );
  }
  const fault = planAnswerFault(someText(actions), known);
  return malformed(
    `actions: expected ids of ${id} with all dependencies (it has ${ids.join(', ')}), got ${show(actions.join(' '))}${fault === null ? '' : `: ${fault}`}`,
  );
}

function raiseProblem(given: Decision['arguments']): Refused | null {
  const example = 'give for example {"steps": 10}';
  if (given === undefined || Object.keys(given).length === 0) {
    return malformed(`arguments: expected by how much to raise, got none; ${example}`);
  }
  const problem = checkLimits(given, 'arguments');
  if (problem !== null) return malformed(problem);
  const none = Object.entries(given).find(([name, by]) => by === null || name === 'run');
  return none === undefined
    ? null
    : malformed(
        `arguments.${none[0]}: expected by how much to raise, got ${show(none[1])}; ${example}`,
      );
}

function malformed(message: string): Refused {
  return { reason: 'malformed', message };
}

function tooLarge(message: string): Refused {
  return { reason: 'too_large', message };
}
