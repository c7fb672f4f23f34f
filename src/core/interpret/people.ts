import { applyControlEvent } from '../control.js';
import { isAllowed } from '../requests/limit-request.js';
import { askingWork } from '../requests/open-requests.js';
import { acceptMessage } from '../ask.js';
import { decidedBefore, type RecordedDecision, type ControlDecision } from '../decisions.js';
import { checkBy } from '../input/check-tags.js';
import { isLoaded } from '../definition/initial-config.js';
import type { Limits } from '../definition/definition.js';
import type { RunEvent } from '../events.js';
import type { FactOf } from '../facts.js';
import type { Ask } from '../inbox.js';
import { isObject, textField } from '../json.js';
import { keepsEarlierMeaning, type RunState } from '../state.js';
import type { Decision } from '../requests/decision.js';
import { callToUndo } from '../requests/undo.js';
import { blocks, UNDO } from '../work/work.js';
import { resumedWork } from './block.js';
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
  const { by: _, ...limits } = input;
  return limits;
}

function decisionOf(
  state: RunState,
  { id, input, at }: Update,
  what: ControlDecision,
): RecordedDecision {
  const { turn } = state;
  const fields = isObject(input) ? input : {};
  const by = textField(fields, 'by');
  return {
    what,
    id,
    at,
    ...(by !== '' && { by }),
    ...(what === 'cancelTurn' && { turn: turn.number }),
    ...(what === 'undo' && { call: callToUndo(state, callIn(fields), at)?.call.id ?? '' }),
  };
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
  return [
    { type: 'undo-changed', call: id, state: 'undoing' },
    { type: 'work-changed', work: { name: `${UNDO}${id}`, key: found.key, phase: 'waiting' } },
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
  const by = isObject(input) && checkBy(input['by']) === null ? textField(input, 'by') : '';
  return { type: 'decision-recorded', decision: { what, id: '', at, ...(by !== '' && { by }) } };
}
