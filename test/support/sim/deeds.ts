import { askProblem, askRefusal } from '../../../src/core/ask.js';
import type { FactOf } from '../../../src/core/facts.js';
import type { Ask } from '../../../src/core/inbox.js';
import type { RunState } from '../../../src/core/state.js';
import { inTurn } from '../../../src/core/turn.js';
import type { Dice } from './dice.js';

/** What people do, as the history records it, without the time. */
export type Deed =
  | Omit<FactOf<'update'>, 'at'>
  | Omit<FactOf<'signal'>, 'at'>
  | Omit<FactOf<'cancel-requested'>, 'at'>;

const update = (name: string, id: string, input: unknown = {}): Deed => ({
  type: 'update',
  name,
  id,
  input,
});

/**
 * Returns what people do next, null for nothing. Like the validators of the workflow, it does not let
 * through what the run refuses; signals have no validator. `serial` numbers the deeds.
 */
export function chooseDeed(state: RunState, dice: Dice, serial: number): Deed | null {
  const id = `u${dice.chance(8) ? serial - 1 : serial}`;
  switch (dice.roll(12)) {
    case 1:
    case 2:
    case 3:
      return chooseAsk(state, dice, id);
    case 4:
      return { type: 'signal', name: 'message', input: chooseSignal(dice, serial) };
    case 5:
      return update('pause', id, { by: 'ann' });
    case 6:
      return update('resume', id);
    case 7:
      return state.open && inTurn(state) && dice.chance(2) ? update('cancelTurn', id) : null;
    case 8:
      return update('setLimits', id, dice.pick([{ steps: 9 }, { tokens: 9_000, by: 'ann' }]));
    case 9:
      return chooseResolution(state, dice, id);
    case 10:
      return state.open && dice.chance(3) ? update('close', id) : null;
    case 11:
      return dice.chance(6) ? { type: 'cancel-requested' } : null;
    default:
      return null;
  }
}

function chooseAsk(state: RunState, dice: Dice, id: string): Deed | null {
  const ask: Ask = {
    message: `text of ${id}`,
    mode: dice.pick(['queue', 'steer']),
    ...(dice.chance(3) && { id: `own ${id}` }),
    ...(dice.chance(4) && { pin: true }),
    ...(dice.chance(6) && { refresh: true }),
    ...(dice.chance(4) && { attachments: [{ type: 'image', url: 'https://x.test/a.png' }] }),
  };
  const refusal = askProblem(ask) ?? askRefusal(state, ask, ask.id ?? id);
  return refusal === null ? update('ask', id, ask) : null;
}

function chooseSignal(dice: Dice, serial: number): unknown {
  const message = { message: 'by signal', id: `s${serial}` };
  return dice.pick<unknown>([
    message,
    { ...message, mode: 'steer' },
    'rubbish',
    { message: 'no id' },
  ]);
}

function chooseResolution(state: RunState, dice: Dice, id: string): Deed | null {
  const asking = state.work.find(({ phase }) => phase === 'asking');
  if (asking?.phase === 'asking') {
    const as = dice.pick(['abandon', 'retry', 'happened']);
    if (as === 'happened' && asking.about === 'safety_check') return null;
    const result = dice.chance(2) && { result: { paid: 1 } };
    return update('resolve', id, { call: asking.name, as, ...result });
  }
  const changed = state.work.find(({ block }) => block?.definition !== undefined);
  const definition = changed?.block?.definition;
  if (changed === undefined) return null;
  return update('resolve', id, { call: changed.name, as: 'accept', definition });
}

/** Returns what ends the waiting of a run that nothing else moves on. */
export function lastDeed(state: RunState, serial: number): Deed {
  const id = `last ${serial}`;
  const asking = state.work.find(({ phase }) => phase === 'asking');
  if (state.paused) return update('resume', id);
  if (asking !== undefined) return update('resolve', id, { call: asking.name, as: 'abandon' });
  if (state.open && state.ending === null) return update('close', id);
  return { type: 'cancel-requested' };
}
