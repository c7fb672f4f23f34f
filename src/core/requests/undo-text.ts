import { type Request, isUndoRequest } from '../transcript/request.js';

type Presented = Pick<Request, 'kind'> & Partial<Request>;

/** What a request asks for that is about an undo. */
export const ASKED_UNDO = 'approval to UNDO a call that was executed';

/** Whether a request is about an undo; false if its decisions are not known. */
export function isUndoing({ kind, decisions = [] }: Presented): boolean {
  return decisions.length > 0 && isUndoRequest({ kind, decisions });
}

/**
 * Returns the fields that say what the run will do. `what`: the description of the call by its author, or else
 * the title of the request. An undo also names the executed call, which must not look like a second one.
 */
export function whatFields(
  what: string,
  request: Presented,
  formatTime: (at: number) => string = isoTime,
): readonly (readonly [name: string, text: string])[] {
  if (!isUndoing(request)) return [['what', what]];
  return [
    ['what', request.summary === undefined ? what : `undo: ${what}`],
    ['executed call', executedText(request, formatTime)],
  ];
}

/** A worker of an earlier version does not say when the call was executed. */
function executedText({ call = '', undo }: Presented, formatTime: (at: number) => string): string {
  if (undo === undefined) return call;
  const at = undo.at === undefined ? '' : `, at ${formatTime(undo.at)}`;
  return `${call}, executed in turn ${undo.turn}, step ${undo.step}${at}`;
}

function isoTime(at: number): string {
  // oxlint-disable-next-line no-restricted-globals -- formats a recorded time and reads no clock
  return new Date(at).toISOString();
}
