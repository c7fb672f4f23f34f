import { formatDuration } from '../text/text.js';
import { type HasTools, type Keeper, type KeptCall, callToUndo, undoFault } from './undo.js';
import { UNDO } from './work.js';

/** The part of a run's state that has the requests of its undos. */
interface HasUndos {
  readonly work: readonly { readonly name: string; readonly request?: { readonly id: string } }[];
}

/**
 * Returns why a call cannot be undone, or null. An undo that names no call is refused while another one is
 * open: a caller who repeats it would undo an earlier call. `now`: Unix time in ms.
 */
export function undoProblem(
  state: Keeper & HasTools & HasUndos,
  id: unknown,
  now: number,
): string | null {
  if (id !== undefined && typeof id !== 'string') return 'call: expected the id of a call';
  const { kept = [] } = state;
  const open = kept.filter((one) => one.state === undefined && one.until > now);
  const others = open.map(({ call }) => call.id).join(', ');
  if (id === undefined) {
    const undoing = kept.findLast((one) => one.state === 'undoing');
    const more = others === '' ? '' : `; to undo another call, name it: ${others}`;
    if (undoing !== undefined) return `call: ${undoingText(state, undoing)}${more}`;
  }
  const found = callToUndo(state, id, now);
  if (found === undefined) {
    if (id === undefined) {
      return 'call: nothing can be undone: a call that succeeded can be, for a time, if its tool has `undo`';
    }
    const known = open.length === 0 ? 'nothing can be undone' : `undoable: ${others}`;
    return `call: ${JSON.stringify(id)} cannot be undone; ${known}`;
  }
  if (found.state === 'undoing') return `call: ${undoingText(state, found)}`;
  if (found.state === 'undone') return `call: ${found.call.id} is undone already`;
  if (found.until <= now) {
    const agoMs = now - found.until;
    return `call: the time to undo ${found.call.id} ended ${formatDuration(agoMs, { as: 'rounded' })} ago`;
  }
  const fault = undoFault(state, found.call);
  return fault === null ? null : `call: ${found.call.id} cannot be undone; ${fault}`;
}

/** Returns how far an undo is that has begun. */
function undoingText({ work }: HasUndos, { call: { id } }: KeptCall): string {
  const request = work.find(({ name }) => name === `${UNDO}${id}`)?.request;
  return request === undefined
    ? `${id} is being undone`
    : `the undo of ${id} waits for a decision about request ${request.id}`;
}
