import { readForm, type AnyCarried } from '../../core/segments/migrations.js';
import type { RunState } from '../../core/state.js';

/**
 * What one segment hands to the next. Null where there is nothing, or where what was handed over
 * cannot be read: any starter can put anything there, and a newer version another form.
 */
export function readCarried(carried: unknown): AnyCarried | null {
  try {
    const read = readForm(carried);
    return 'form' in read ? read.form : null;
  } catch {
    return null;
  }
}

/** The state that one segment hands to the next; null where it cannot be read. */
export function carriedState(carried: unknown): RunState | null {
  return readCarried(carried)?.state ?? null;
}
