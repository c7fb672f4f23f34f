import { endTurn } from './change.js';
import { failed } from './make-outcome.js';
import { reduce } from './reduce.js';
import type { RunState } from './state.js';

/**
 * Ends the turn after a fault of the engine. The open calls also get results, because providers
 * refuse a prompt with open calls.
 */
export function closeFailedTurn(
  state: RunState,
  { message, at }: { readonly message: string; readonly at: number },
): RunState {
  const closed = reduce(state, { type: 'turn-interrupted', by: 'cancelTurn', at });
  return endTurn(closed, failed(closed, { reason: 'error', message }));
}
