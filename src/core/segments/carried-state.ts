import { hasOwnHash } from '../definition/initial-config.js';
import { parseCarriedState, type CarriedState } from './migrations.js';

/**
 * Reads the state passed from one segment to the next. Returns the problem as text if the state is
 * malformed, or if its definition does not have the hash of its content: such a run fails before it
 * has a state. Throws a `NewerStateError` for a version that a newer worker wrote.
 */
export function readCarriedState(
  value: unknown,
): { readonly carried: CarriedState } | { readonly problem: string } {
  const read = parseCarriedState(value);
  if ('problem' in read || hasOwnHash(read.carried.state)) return read;
  return { problem: 'carried.state.config.definition.hash: expected that of the definition' };
}
