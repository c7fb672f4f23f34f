import { findTool } from '../calls/batch.js';
import type { Limits } from '../definition/definition.js';
import type { FollowRunResult } from '../guards/recorded.js';
import type { Ask } from '../input/inbox.js';
import { checkRecordedLimits } from '../input/limits.js';
import { actorProblem, actorOf } from '../input/turn-context.js';
import { askingWork } from '../requests/open-requests.js';
import { limitsText } from '../requests/limit-words.js';
import { isAllowed } from '../requests/raise-requests.js';
import { isLoaded } from '../rules/limits.js';
import { acceptMessage } from '../run/ask.js';
import { type ChildEnd, childResult } from '../run/complete-batch.js';
import { applyControlEvent } from '../run/control.js';
import type { Completed, EndOf, FactOf, RunEvent } from '../run/events.js';
import { getInterruption } from '../state/change.js';
import { decidedBefore } from '../state/decisions.js';
import {
  type ControlDecision,
  type RecordedDecision,
  type RunState,
  keepsEarlierMeaning,
} from '../state/state.js';
import { openCallById } from '../state/turn.js';
import { callToUndo } from '../state/undo.js';
import { UNDO, type CallWork, blocks, findWork } from '../state/work.js';
import { isObject, textField } from '../text/json.js';
import { type CallResult, cancelledCall } from '../transcript/call-result.js';
import type { ToolCall } from '../transcript/messages.js';
import { STORAGE_LOST } from '../transcript/outcome.js';
import type { Decision } from '../transcript/request.js';
import { resumedWork } from './block.js';
import { finishCall, lossEvents } from './calls.js';
import { decisionEvents, decisionsMade } from './decide.js';

type Update = FactOf<'update'>;

const DECISIONS: readonly string[] = [
  'resolve',
  'cancelTurn',
  'pause',
  'resume',
  'setLimits',
  'close',
  'revoke',
  'undo',
] satisfies readonly ControlDecision[];

/**
 * Returns the events of an update that the run's validators have accepted. Sending an update again
 * has no second effect.
 */
export function updateEvents(state: RunState, update: Update): readonly RunEvent[] {
  if (update.name === 'ask') return messageEvents(state, update);
  if (!isDecision(update.name) || decidedBefore(state.decisions, update.id) !== undefined)
    return [];
  // A pause of a paused run changes nothing, so it is not recorded.
  const isPaused = state.paused && state.config.revised === true;
  if (update.name === 'pause' && isPaused) return [];
  // Each decision is recorded separately when it takes effect.
  if (update.name === 'resolve') return decisionsMade(state, decisionsIn(update), update);
  const decision = decisionOf(state, update, update.name);
  const record: RunEvent = { type: 'decision-recorded', decision };
  if (update.name !== 'setLimits') return [...effects(state, update), record];
  const limits = limitsIn(update.input);
  // Before the agent is loaded, its price and its limits are not known.
  if (!isLoaded(state)) return [{ type: 'limits-requested', requested: { limits, decision } }];
  return [{ type: 'limits-set', limits }, ...limitFreed(state, limits, update), record];
}

/**
 * Returns the events that end the run's request for a higher limit if the new limits allow it to go
 * on. Where workers have `mayDecide`, only a checked decision ends it.
 */
function limitFreed(state: RunState, limits: Limits, update: Update): readonly RunEvent[] {
  if (keepsEarlierMeaning(state, update)) return [];
  const asking = askingWork(state).find(({ request }) => request.kind === 'limit');
  const { limit } = asking?.request ?? {};
  if (asking === undefined || limit === undefined) return [];
  if (asking.proposal !== undefined || state.config.decisions?.mayDecide === true) return [];
  const after = applyControlEvent(state, { type: 'limits-set', limits });
  if (!isAllowed(after, limit.name, update.at)) return [];
  return [{ type: 'work-ended', name: asking.name }, { type: 'limit-raised' }];
}

function isDecision(name: string): name is ControlDecision {
  return DECISIONS.includes(name);
}

function effects(state: RunState, update: Update): readonly RunEvent[] {
  switch (update.name) {
    case 'revoke': {
      const grant = isObject(update.input) ? textField(update.input, 'grant') : '';
      return [{ type: 'grant-revoked', grant }];
    }
    case 'undo':
      return undoBegun(state, update);
    case 'cancelTurn':
      return [{ type: 'interruption-requested', by: 'cancelTurn' }];
    case 'pause':
      return [{ type: 'pause-changed', paused: true }];
    case 'resume':
      return resumes(state);
    case 'close':
      return [{ type: 'end-requested', by: 'closed' }];
    default:
      return [];
  }
}

function resumes({ paused: wasPaused, work }: RunState): readonly RunEvent[] {
  return [
    ...(wasPaused ? [{ type: 'pause-changed', paused: false } as const] : []),
    ...work.map((one) => ({ type: 'work-changed', work: resumedWork(one) }) as const),
  ];
}

function limitsIn(input: unknown): Limits {
  if (!isObject(input)) return {};
  const { by: _, door: _door, ...limits } = input;
  return limits;
}

function decisionOf(
  state: RunState,
  { id, input, at }: Update,
  what: ControlDecision,
): RecordedDecision {
  const { turn } = state;
  const fields = isObject(input) ? input : {};
  return {
    what,
    id,
    at,
    ...actorIn(fields),
    ...(what === 'cancelTurn' && { turn: turn.number }),
    ...(what === 'undo' && { call: callToUndo(state, callIn(fields), at)?.call.id ?? '' }),
    ...(state.config.revised && what === 'revoke' && { grant: textField(fields, 'grant') }),
    ...(state.config.revised && what === 'setLimits' && limitsSet(limitsIn(fields))),
  };
}

/** Returns the limits as a decision records them. A history that was written by hand may have others. */
function limitsSet(limits: Limits): Pick<RecordedDecision, 'limits'> {
  return checkRecordedLimits(limits, 'limits') === null ? { limits: limitsText(limits) } : {};
}

function actorIn(fields: Record<string, unknown>): ReturnType<typeof actorOf> {
  const [by, door] = [textField(fields, 'by'), textField(fields, 'door')];
  return actorOf({ by: by || undefined, door: door || undefined });
}

/** Returns the decisions in the argument of a validated update. */
function decisionsIn(update: Update): readonly Decision[] {
  const { input } = update;
  const list: readonly unknown[] = Array.isArray(input) ? input : [input];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  const decisions = list.filter(isObject) as unknown as readonly Decision[];
  return decisions.map((decision) => asReceived(decision, update));
}

/** Returns a decision with the version that received it: the sender's claim does not count. */
function asReceived(sent: Decision, { patched }: Pick<Update, 'patched'>): Decision {
  const { patched: _, ...decision } = sent;
  return patched ? { ...decision, patched } : decision;
}

function callIn(fields: Record<string, unknown>): string | undefined {
  const { call } = fields;
  return typeof call === 'string' ? call : undefined;
}

function undoBegun(state: RunState, { input, at }: Update): readonly RunEvent[] {
  const found = callToUndo(state, isObject(input) ? callIn(input) : undefined, at);
  if (found === undefined) return [];
  const { id } = found.call;
  const asker = state.config.revised && isObject(input) ? actorIn(input) : {};
  const work = { name: `${UNDO}${id}`, key: found.key, ...asker, phase: 'waiting' } as const;
  return [
    { type: 'undo-changed', call: id, state: 'undoing' },
    { type: 'work-changed', work },
  ];
}

function messageEvents(state: RunState, update: Update): readonly RunEvent[] {
  const { input, id } = update;
  if (!isObject(input)) return [];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  const ask = input as unknown as Ask;
  const earlier = keepsEarlierMeaning(state, update);
  return messageReceived(state, acceptMessage(state, ask, ask.id ?? id, earlier), update);
}

/** Returns the events of a message, and those of its decision if it makes one. */
export function messageReceived(
  state: RunState,
  { event, answer }: Pick<ReturnType<typeof acceptMessage>, 'event' | 'answer'>,
  fact: Pick<Update, 'at' | 'patched'>,
): readonly RunEvent[] {
  const { at } = fact;
  if (event === null) return [];
  if (event.type !== 'message-received' || answer.type !== 'decides') return [event];
  const { id, text } = event.message;
  const { work } = answer;
  const decision = asReceived(answer.decision, fact);
  if (decision.as !== 'answer') return [event, ...decisionsMade(state, [decision], { id, at })];
  // The words were read here, so no worker needs to check them.
  const checked = { ok: true, result: { text } } as const;
  return [event, ...decisionEvents(state, work, { decision, id, at, checked })];
}

/**
 * Returns the events of a pause by signal. A signal has no answer, so a malformed one also pauses
 * the run.
 */
export function paused(state: RunState, signal: Claimed): readonly RunEvent[] {
  if (state.paused) return [];
  return [{ type: 'pause-changed', paused: true }, signaled('pause', signal)];
}

/** Returns the events of a resume by signal: none for a run that is neither paused nor blocked. */
export function resumed(state: RunState, signal: Claimed): readonly RunEvent[] {
  if (!state.paused && blocks(state).length === 0) return [];
  return [...resumes(state), signaled('resume', signal)];
}

type Claimed = Pick<Update, 'input' | 'at'>;

function signaled(what: 'pause' | 'resume', { input, at }: Claimed): RunEvent {
  const fields = isObject(input) && actorProblem(input) === null ? input : {};
  return { type: 'decision-recorded', decision: { what, id: '', at, ...actorIn(fields) } };
}

/** Returns the events of a called agent's ended run. */
export function childEnded(
  state: RunState,
  { call, outcome, message, at }: FactOf<'child-ended'>,
): readonly RunEvent[] {
  return agentCallEnded(state, { id: call, end: { outcome, message }, at });
}

/** Returns the events when a run with the agent's id already exists: it is followed next. */
export function childExisted(
  state: RunState,
  { call }: FactOf<'child-existed'>,
): readonly RunEvent[] {
  const work = findWork(state, call);
  return work === undefined ? [] : [{ type: 'work-changed', work: { ...work, phase: 'waiting' } }];
}

/**
 * Returns the events after an activity followed an existing run. Without an outcome, the agent runs
 * again.
 */
export function followed(
  state: RunState,
  { work: id, result, at }: Completed<FollowRunResult>,
): readonly RunEvent[] {
  const work = findWork(state, id);
  if (work === undefined) return [];
  switch (result.type) {
    case 'ended':
      return agentCallEnded(state, { id, end: { outcome: result.outcome, message: '' }, at });
    case 'lost':
      return [{ type: 'work-changed', work: { ...work, again: true, phase: 'waiting' } }];
    case 'other': {
      if (!result.running) {
        return [{ type: 'work-changed', work: { ...work, phase: 'waiting' } }];
      }
      const end = { outcome: null, message: 'Workflow execution already started' };
      return agentCallEnded(state, { id, end, at });
    }
  }
}

/** Returns the events when a called agent's run cannot be followed: its call fails. */
export function followFailed(
  state: RunState,
  {
    work: id,
    failure,
    at,
  }: Pick<EndOf<'failed'>, 'work' | 'at'> & { readonly failure: { readonly message: string } },
): readonly RunEvent[] {
  const end = { outcome: null, message: failure.message };
  return agentCallEnded(state, { id, end, at });
}

/** Returns the events of a called agent's losses, which are also losses of its caller. */
function lossesOf({ name }: ToolCall, { outcome }: ChildEnd, at: number): readonly RunEvent[] {
  const { lost = [] } = outcome ?? {};
  const of = { type: STORAGE_LOST, attempt: 1, waitMs: 0, at };
  return lost.flatMap((message) =>
    lossEvents({ reports: [{ ...of, message: `agent ${name}: ${message}` }] }),
  );
}

function agentCallEnded(
  state: RunState,
  { id, end, at }: { readonly id: string; readonly end: ChildEnd; readonly at: number },
): readonly RunEvent[] {
  const call = openCallById(state, id);
  const tool = call && findTool(state, call.name);
  const work = findWork(state, id);
  if (!call || !tool || work === undefined) return [];
  const result = childResult(call, end);
  const status = end.outcome?.status;
  const counts = getInterruption(state) === null || status === 'completed' || status === 'stopped';
  const lost = lossesOf(call, end, at);
  if (counts) return [...lost, ...recordConversation(work, end), ...finishCall(result, at)];
  const { usage } = result;
  const canceled: CallResult = { ...cancelledCall(call, tool), ...(usage && { usage }) };
  return finishCall(canceled, at);
}

/**
 * Returns the event that records the conversation for the node's next visit. A failed one is not
 * continued.
 */
function recordConversation({ child }: CallWork, { outcome }: ChildEnd): readonly RunEvent[] {
  const isGood = outcome?.status === 'completed' || outcome?.status === 'stopped';
  return child === undefined || !isGood ? [] : [{ type: 'conversation-recorded', run: child }];
}
