import { acceptMessage, acceptSignal } from '../../core/ask.js';
import { decidedBefore, type Decision, type DecisionName } from '../../core/decisions.js';
import type { Limits } from '../../core/definition/definition.js';
import type { Ask } from '../../core/inbox.js';
import { isObject, textField } from '../../core/json.js';
import { callResolved, toolAccepted } from './calls.js';
import type { EventOf, ProjectionState } from './state.js';
import { emit } from './emit.js';

/**
 * Applies messages and decisions. Updates are well formed, because the workflow has accepted them;
 * signals may hold anything.
 */
export function applyPersonEvent(
  projection: ProjectionState,
  event: EventOf<'update' | 'signal'>,
): void {
  if (event.type === 'signal') return signaled(projection, event);
  if (event.name === 'ask') return asked(projection, event);
  if (decidedBefore(projection.state?.decisions, event.updateId) !== undefined) return;
  const decision = decisionOf(projection, event);
  if (decision === null) return;
  decided(projection, event);
  emit(projection, { type: 'decided', decision });
}

function decided(projection: ProjectionState, event: EventOf<'update'>): void {
  switch (event.name) {
    case 'resolve':
      toolAccepted(projection, event);
      return callResolved(projection, event);
    case 'cancelTurn':
      projection.cancelTurnRequested = true;
      return;
    case 'pause':
      return emit(projection, { type: 'paused', paused: true });
    case 'resume':
      return emit(projection, { type: 'paused', paused: false });
    case 'close':
      return emit(projection, { type: 'ending', by: 'closed' });
    case 'setLimits':
      return limitsSet(projection, event.input);
    default:
  }
}

function limitsSet(projection: ProjectionState, input: unknown): void {
  if (!isObject(input)) return;
  const { by: _, ...limits } = input;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  emit(projection, { type: 'limits-set', limits: limits as unknown as Limits });
}

const DECISIONS: readonly string[] = [
  'resolve',
  'cancelTurn',
  'pause',
  'resume',
  'setLimits',
  'close',
] satisfies readonly DecisionName[];

/** Returns the decision as the workflow recorded it; null for other updates. */
function decisionOf(
  projection: ProjectionState,
  { name, updateId, input }: EventOf<'update'>,
): Decision | null {
  if (!DECISIONS.includes(name)) return null;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one of the names above
  const what = name as DecisionName;
  const given = isObject(input) ? input : {};
  const by = textField(given, 'by');
  return {
    what,
    id: updateId,
    at: projection.taskAt,
    ...(by !== '' && { by }),
    ...(what === 'cancelTurn' && { turn: projection.state?.turn.number ?? 0 }),
    ...(what === 'resolve' && { call: textField(given, 'call'), as: textField(given, 'as') }),
  };
}

function signaled(projection: ProjectionState, { name, input, at }: EventOf<'signal'>): void {
  if (projection.state === null || name !== 'message') return;
  const event = acceptSignal(projection.state, input, at);
  if (event?.type === 'message-refused') projection.unseenRefusals += 1;
  if (event !== null) emit(projection, event);
}

/** A workflow task starts. Messages by signal since the last task are refused at this time. */
export function taskStarted(projection: ProjectionState, at: number): void {
  projection.taskAt = at;
  const { state, unseenRefusals } = projection;
  const refused = state?.inbox.refused;
  if (state === null || refused === undefined || unseenRefusals === 0) return;
  const seen = refused.length - unseenRefusals;
  const dated = refused.map((one, index) => (index < seen ? one : { ...one, at }));
  projection.state = { ...state, inbox: { ...state.inbox, refused: dated } };
}

function asked(projection: ProjectionState, { input, updateId }: EventOf<'update'>): void {
  if (projection.state === null || !isObject(input)) return;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  const ask = input as unknown as Ask;
  const { event } = acceptMessage(projection.state, ask, ask.id ?? updateId);
  if (event !== null) emit(projection, event);
}
