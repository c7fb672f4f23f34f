import { hasOwnHash } from '../definition/initial-config.js';
import { readForm, type Carried } from './migrations.js';

/**
 * Reads the state passed from one segment to the next. Returns the problem as text if the state is
 * malformed, or if its definition does not have the hash of its content: such a run fails before it
 * has a state. Throws a `NewerStateError` for a form that is newer than this version.
 */
export function readPassedOn(
  value: unknown,
): { readonly form: Carried } | { readonly problem: string } {
  const read = readForm(value);
  if ('problem' in read || hasOwnHash(read.form.state)) return read;
  return { problem: 'carried.state.config.definition.hash: expected that of the definition' };
}
