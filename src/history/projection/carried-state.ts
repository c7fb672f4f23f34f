import { readForm, type AnyCarried } from '../../core/segments/migrations.js';
import type { RunState } from '../../core/state.js';

/**
 * Returns what one segment carries over to the next. Null if there is nothing, or if it cannot be read:
 * any starter can write anything there, and a newer version may use another form.
 */
export function readCarried(carried: unknown): AnyCarried | null {
  try {
    const read = readForm(carried);
    return 'form' in read ? read.form : null;
  } catch {
    return null;
  }
}

/** Returns the state that one segment carries over to the next; null if it cannot be read. */
export function carriedState(carried: unknown): RunState | null {
  return readCarried(carried)?.state ?? null;
}
