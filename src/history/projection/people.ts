import { acceptMessage, acceptSignal } from '../../core/ask.js';
import { decidedBefore, type Decision, type DecisionName } from '../../core/decisions.js';
import type { Limits } from '../../core/definition/definition.js';
import type { Ask } from '../../core/inbox.js';
import { isObject, textField } from '../../core/json.js';
import { callResolved, toolAccepted } from './calls.js';
import type { EventOf, ProjectionState } from './state.js';
import { tell } from './emit.js';

/**
 * What people said and decided: updates that the workflow has accepted, so they are well formed, and
 * signals, which hold anything.
 */
export function personSaid(told: ProjectionState, fact: EventOf<'update' | 'signal'>): void {
  if (fact.type === 'signal') return signaled(told, fact);
  if (fact.name === 'ask') return asked(told, fact);
  if (decidedBefore(told.state?.decisions, fact.updateId) !== undefined) return;
  const decision = decisionOf(told, fact);
  if (decision === null) return;
  decided(told, fact);
  tell(told, { type: 'decided', decision });
}

function decided(told: ProjectionState, fact: EventOf<'update'>): void {
  switch (fact.name) {
    case 'resolve':
      toolAccepted(told, fact);
      return callResolved(told, fact);
    case 'cancelTurn':
      told.cancelTurnRequested = true;
      return;
    case 'pause':
      return tell(told, { type: 'paused', paused: true });
    case 'resume':
      return tell(told, { type: 'paused', paused: false });
    case 'close':
      return tell(told, { type: 'ending', by: 'closed' });
    case 'setLimits':
      return limitsSet(told, fact.input);
    default:
  }
}

function limitsSet(told: ProjectionState, input: unknown): void {
  if (!isObject(input)) return;
  const { by: _, ...limits } = input;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  tell(told, { type: 'limits-set', limits: limits as unknown as Limits });
}

const DECISIONS: readonly string[] = [
  'resolve',
  'cancelTurn',
  'pause',
  'resume',
  'setLimits',
  'close',
] satisfies readonly DecisionName[];

/** The decision as the workflow has put it on record; null for other updates. */
function decisionOf(told: ProjectionState, { name, updateId, input }: EventOf<'update'>): Decision | null {
  if (!DECISIONS.includes(name)) return null;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one of the names above
  const what = name as DecisionName;
  const given = isObject(input) ? input : {};
  const by = textField(given, 'by');
  return {
    what,
    id: updateId,
    at: told.taskAt,
    ...(by !== '' && { by }),
    ...(what === 'cancelTurn' && { turn: told.state?.turn.number ?? 0 }),
    ...(what === 'resolve' && { call: textField(given, 'call'), as: textField(given, 'as') }),
  };
}

function signaled(told: ProjectionState, { name, input, at }: EventOf<'signal'>): void {
  if (told.state === null || name !== 'message') return;
  const event = acceptSignal(told.state, input, at);
  if (event?.type === 'message-refused') told.unseenRefusals += 1;
  if (event !== null) tell(told, event);
}

/** What came by signal since the task before is refused when the workflow looks at it: now. */
export function taskBegun(told: ProjectionState, at: number): void {
  told.taskAt = at;
  const { state, unseenRefusals } = told;
  const refused = state?.inbox.refused;
  if (state === null || refused === undefined || unseenRefusals === 0) return;
  const seen = refused.length - unseenRefusals;
  const dated = refused.map((one, index) => (index < seen ? one : { ...one, at }));
  told.state = { ...state, inbox: { ...state.inbox, refused: dated } };
}

function asked(told: ProjectionState, { input, updateId }: EventOf<'update'>): void {
  if (told.state === null || !isObject(input)) return;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  const ask = input as unknown as Ask;
  const { event } = acceptMessage(told.state, ask, ask.id ?? updateId);
  if (event !== null) tell(told, event);
}
