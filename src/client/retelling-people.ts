import { receive } from '../core/ask.js';
import type { Limits } from '../core/definition.js';
import type { Ask } from '../core/inbox.js';
import { isObject } from '../core/json.js';
import { callResolved, toolAccepted } from './retelling-calls.js';
import type { FactOf, Retelling } from './retelling-state.js';
import { tell } from './retelling-tell.js';

/** What people said and decided: updates that the workflow has accepted, so they are well formed. */
export function personSaid(told: Retelling, fact: FactOf<'update'>): void {
  switch (fact.name) {
    case 'ask':
      return asked(told, fact);
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
      if (!isObject(fact.input)) return;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
      return tell(told, { type: 'limits-set', limits: fact.input as unknown as Limits });
    default:
  }
}

function asked(told: Retelling, { input, updateId }: FactOf<'update'>): void {
  if (told.state === null || !isObject(input)) return;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  const ask = input as unknown as Ask;
  const { event } = receive(told.state, ask, ask.id ?? updateId);
  if (event !== null) tell(told, event);
}
