import { actorOf } from '../input/turn-context.js';
import { findTool } from '../calls/batch.js';
import { type Verdict, asksNoMore } from '../definition/rules.js';
import type { CheckDecisionResult, RunFunctionResult } from '../guards/recorded.js';
import { readPlanDecision, shownActions, someText } from '../plan/confirm-plan.js';
import { askingWork } from '../requests/open-requests.js';
import { raisedLimits } from '../requests/raise-requests.js';
import type { Completed, EndOf, RunEvent } from '../run/events.js';
import { getInterruption } from '../state/change.js';
import { toGrant } from '../state/consent.js';
import { type RecordedDecision, type RunState, keepsEarlierMeaning } from '../state/state.js';
import { nodeOfCall } from '../state/turn-definition.js';
import { undoFault } from '../state/undo.js';
import {
  type AskingWork,
  UNDO,
  type CallWork,
  begunCall,
  callOfWork,
  findWork,
  isUndo,
} from '../state/work.js';
import {
  type CallResult,
  abandonedCall,
  confirmedCall,
  deniedCall,
  succeededCall,
} from '../transcript/call-result.js';
import type { ParsedArguments, ToolCall } from '../transcript/messages.js';
import type { Decision, ServerAnswer } from '../transcript/request.js';
import { unblocked } from './block.js';
import { expireIfDue, finishCall, lossEvents } from './calls.js';
import { isServerAsk, serverAnswered } from './server-asks.js';

/** The result of a worker's check of a decision. */
type Checked = Extract<CheckDecisionResult, { ok: true }>;

interface Made {
  readonly decision: Decision;
  /** The id of the update. */
  readonly id: string;
  /** Unix time in ms. */
  readonly at: number;
}

/** Returns the events of decisions that the run's validator has accepted. */
export function decisionsMade(
  state: RunState,
  decisions: readonly Decision[],
  { id, at }: Omit<Made, 'decision'>,
): readonly RunEvent[] {
  return decisions.flatMap((decision) => {
    const work = askingWork(state).find(({ request }) => request.id === decision.request);
    if (work === undefined || work.proposal !== undefined) return [];
    // Work in flight may still finish, so the decision waits for it.
    if (work.phase === 'in-flight' || needsCheck(state, decision)) {
      return [{ type: 'decision-proposed', work: work.name, proposal: { id, decision, at } }];
    }
    return decisionEvents(state, work, { decision, id, at });
  });
}

/** Whether a decision must be checked on a worker, because of its content or its decider. */
function needsCheck({ config }: RunState, { as }: Decision): boolean {
  return as === 'edit' || as === 'answer' || config.decisions?.mayDecide === true;
}

/** Returns the events of a decision that takes effect. `checked`: a worker's findings. */
export function decisionEvents(
  state: RunState,
  work: AskingWork,
  made: Made & { readonly checked?: Checked; readonly madeAt?: number },
): readonly RunEvent[] {
  const { at, madeAt = at } = made;
  const decision = {
    ...recordOf(work, { ...made, at: madeAt }),
    ...planDecided(state, work, made),
  };
  return [...effects(state, work, made), { type: 'decision-recorded', decision }];
}

function effects(
  state: RunState,
  work: AskingWork,
  { decision, at, checked }: Made & { readonly checked?: Checked },
): readonly RunEvent[] {
  const { request, name } = work;
  const { as, actions, note: given, patched, result } = decision;
  if (request.kind === 'limit') return limitDecided(state, work, decision, at);
  const call = callOfWork(state, name);
  if (call !== undefined && isUndo(work)) {
    return undoDecided(work, { call, decision, fault: undoFault(state, call) });
  }
  const tool = call && findTool(state, call.name);
  if (call === undefined || tool === undefined) return [{ type: 'work-ended', name }];
  if (isServerAsk(work)) {
    const answer = as === 'answer' ? checked?.answer : REFUSED_ASK[as];
    return answer === undefined ? [] : serverAnswered(state, work, answer, at);
  }
  const note = keepsEarlierMeaning(state, decision) ? undefined : given || undefined;
  const noted = (outcome: CallResult): CallResult =>
    nodeOfCall(call) === null
      ? outcome
      : { ...outcome, ...(note !== undefined && { note }), ...(patched && { patched }) };
  switch (as) {
    case 'some':
      return finishCall(noted(succeededCall(call, tool, { text: someText(actions) })), at);
    case 'approve': {
      if (request.kind === 'plan')
        return finishCall(noted(succeededCall(call, tool, { text: 'yes' })), at);
      const grant = toGrant(decision, { call, at });
      return [...(grant === null ? [] : [{ type: 'grant-added', grant } as const]), approved(work)];
    }
    case 'deny':
      return finishCall(noted(deniedCall(call, deniedText(given))), at);
    case 'edit':
      return checked?.call === undefined ? [] : edited(work, { call: checked.call, decision, at });
    case 'answer': {
      if (checked?.result === undefined) return [];
      const isOwn = request.kind === 'approval';
      // The planner reads a change as a message, whose sender is the person.
      const sender = request.kind === 'plan' ? actorOf(decision) : {};
      const text = isOwn ? `${GIVEN}\n${checked.result.text}` : checked.result.text;
      const answered = succeededCall(call, tool, { ...checked.result, text });
      return [
        ...lossEvents(checked.result),
        ...finishCall(noted({ ...answered, ...sender, executed: !isOwn }), at),
      ];
    }
    case 'happened':
      return finishCall(confirmedCall(call, tool, result), at);
    case 'abandon':
      return finishCall(abandonedCall(call, note), at);
    case 'retry':
      return [{ type: 'work-changed', work: { ...begunCall(work), retried: true } }];
    case 'accept': {
      const { definition = '' } = request;
      return [
        { type: 'tool-accepted', tool: call.name, definition },
        { type: 'work-changed', work: unblocked(work) },
      ];
    }
    case 'raise':
    case 'stop':
      return [];
  }
}

/** What a server gets for a decision other than `answer`. */
const REFUSED_ASK: Partial<Record<Decision['as'], ServerAnswer>> = {
  deny: { action: 'decline' },
  abandon: { action: 'cancel' },
};

/** For the model: the tool did not run. */
const GIVEN = '[a person gave this result; the tool was not executed]';

function deniedText(note: string | undefined): string {
  return note === undefined || note === '' ? 'a person denied it' : `a person denied it: ${note}`;
}

function approved(work: CallWork): RunEvent {
  return { type: 'work-changed', work: { ...begunCall(work), approved: true } };
}

/**
 * Returns the events of edited arguments. The edit also approves the call if the rules require no
 * more than before, and the tool gets what the person wrote; otherwise, the run asks the deciders
 * whom the rules now name.
 */
function edited(
  work: AskingWork,
  { call, decision, at }: Pick<Made, 'decision' | 'at'> & { call: NonNullable<Checked['call']> },
): readonly RunEvent[] {
  const change: RunEvent = { type: 'call-edited', id: work.name, call };
  const { verdict, parsed } = call;
  // The person has not seen what the tool makes of the new arguments, if that is something else.
  const isSeen = parsed === undefined && asksNoMore(verdict ?? null, work.request.deciders ?? []);
  if (verdict === undefined || isSeen) return [change, approved(work)];
  const { by = 'a person' } = decision;
  const { expires, deciders, why } = verdict;
  const request = {
    kind: 'approval',
    why: `${why}; ${by} changed the arguments`,
    raisedAt: at,
    ...(expires !== undefined && { expiresAt: at + expires }),
    ...(deciders && { deciders }),
  } as const;
  return [change, { type: 'request-raised', work: work.name, request }];
}

function limitDecided(
  state: RunState,
  { name, request }: AskingWork,
  { as, arguments: raised }: Decision,
  at: number,
): readonly RunEvent[] {
  const over: RunEvent = { type: 'work-ended', name };
  if (as !== 'raise' || request.limit === undefined) return [over, { type: 'limit-kept' }];
  const limits = raisedLimits(state, raised ?? {}, at);
  return [over, { type: 'limits-set', limits }, { type: 'limit-raised' }];
}

function undoDecided(
  work: AskingWork,
  {
    call: { id: call },
    decision: { as, note },
    fault,
  }: {
    readonly call: ToolCall;
    readonly decision: Decision;
    /** Why no worker can undo the call. */
    readonly fault: string | null;
  },
): readonly RunEvent[] {
  const over: RunEvent = { type: 'work-ended', name: work.name };
  if (as !== 'approve') {
    return [over, { type: 'undo-changed', call, state: 'denied', message: deniedText(note) }];
  }
  if (fault === null) return [approved(work)];
  return [over, { type: 'undo-changed', call, state: 'failed', message: fault }];
}

function recordOf({ request, name }: AskingWork, { decision, id, at }: Made): RecordedDecision {
  const { as } = decision;
  const call = request.kind === 'limit' ? {} : { call: name };
  return {
    what: 'resolve',
    id,
    at,
    ...actorOf(decision),
    request: request.id,
    ...call,
    as,
  };
}

/** Names the decision about a plan as people see it, with the actions that it chooses. */
function planDecided(
  state: RunState,
  { request, name }: AskingWork,
  { decision: { as, actions, result } }: Pick<Made, 'decision'>,
): Pick<RecordedDecision, 'as' | 'actions'> {
  if (request.kind !== 'plan' || (as !== 'some' && as !== 'answer')) return {};
  const planned = shownActions(callOfWork(state, name)?.arguments ?? '') ?? [];
  const text = as === 'some' ? someText(actions) : result;
  return (typeof text === 'string' && readPlanDecision(text, planned)) || {};
}

interface CheckedWork {
  readonly name: string;
  /** The id of the request that the checked decision is about. */
  readonly request: string;
  readonly result: CheckDecisionResult;
  /** Unix time in ms. */
  readonly at: number;
}

/** Returns the events of a checked decision: it takes effect, or the request stays open. */
export function decisionChecked(
  state: RunState,
  { name, request, result, at }: CheckedWork,
): readonly RunEvent[] {
  const work = askingWork(state).find((one) => one.name === name);
  // A check that outlasted its request does not apply to the next one.
  if (work?.proposal === undefined || work.request.id !== request) return [];
  const { proposal, ...open } = work;
  const { id, decision, at: madeAt } = proposal;
  // Blocked work keeps being retried.
  const phase = open.block === undefined ? 'asking' : 'waiting';
  const asking: AskingWork = { ...open, phase };
  if (result.ok && isComplete(decision, result)) {
    return decisionEvents(state, asking, { decision, id, at, madeAt, checked: result });
  }
  const message = result.ok ? 'the check brought no result' : result.message;
  const record = recordOf(asking, { decision, id, at: madeAt });
  return [
    { type: 'work-changed', work: asking },
    { type: 'decision-recorded', decision: { ...record, refused: message.slice(0, 500) } },
    // The request may have expired in the meantime.
    ...(getInterruption(state) === null ? expireIfDue(state, asking, at) : []),
  ];
}

/** Whether a check's result has the data that the decision needs. */
function isComplete({ as }: Decision, { call, result, answer }: Checked): boolean {
  if (as === 'edit') return call !== undefined;
  return as !== 'answer' || result !== undefined || answer !== undefined;
}

/** Returns the events when a tool's `undo` ended, or when the rules did not allow it to begin. */
export function undone(state: RunState, fact: Completed<RunFunctionResult>): readonly RunEvent[] {
  const work = findWork(state, fact.work);
  const { result } = fact;
  if (work === undefined) return [];
  switch (result.happened) {
    case true:
      return ended(work, 'undone');
    case 'undecided':
      return askToUndo(state, work, { ...result, at: fact.at });
    case 'unknown':
      return ended(work, 'failed', result.message);
    case false:
      return ended(work, 'failed', 'it was not undone');
  }
}

export function undoFailed(
  state: RunState,
  fact: Pick<EndOf<'failed'>, 'work'> & { readonly failure: { readonly message: string } },
): readonly RunEvent[] {
  const work = findWork(state, fact.work);
  return work === undefined ? [] : ended(work, 'failed', fact.failure.message);
}

function askToUndo(
  { unattended }: RunState,
  work: CallWork,
  {
    verdict,
    parsed,
    at,
  }: { readonly verdict: Verdict; readonly parsed?: ParsedArguments; readonly at: number },
): readonly RunEvent[] {
  const { then, why, deciders, expires } = verdict;
  if (then === 'deny' || unattended === 'deny') return ended(work, 'denied', why);
  const request = {
    kind: 'approval',
    why,
    raisedAt: at,
    ...(expires !== undefined && { expiresAt: at + expires }),
    ...(deciders && { deciders }),
  } as const;
  const call = work.name.slice(UNDO.length);
  return [
    ...(parsed ? [{ type: 'undo-parsed', call, parsed } as const] : []),
    { type: 'request-raised', work: work.name, request },
  ];
}

function ended(
  { name }: CallWork,
  state: 'undone' | 'failed' | 'denied',
  message?: string,
): readonly RunEvent[] {
  const call = name.slice(UNDO.length);
  const why = message === undefined ? {} : { message: message.slice(0, 500) };
  return [
    { type: 'work-ended', name },
    { type: 'undo-changed', call, state, ...why },
  ];
}
