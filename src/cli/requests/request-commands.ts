import { SHOWN_DIGITS } from '../../core/requests/request-view.js';
import type { DecisionKind, Request } from '../../core/requests/request.js';

/** The words of a command that decides, and its purpose. */
export interface DecidingCommand {
  readonly words: readonly string[];
  readonly purpose: string;
}

/** Returns the commands that can decide about a request, in the order in which it offers them. */
export function decidingCommands(run: string, request: Request): readonly DecidingCommand[] {
  return request.decisions.map((as) => decidingCommand(run, request, as));
}

/** Returns the command for one decision about a request. */
export function decidingCommand(
  run: string,
  { id, digest, kind, definition }: Pick<Request, 'id' | 'digest' | 'kind' | 'definition'>,
  as: DecisionKind,
): DecidingCommand {
  const seen = ['--digest', digest.slice(0, SHOWN_DIGITS)];
  const resolve = ['resolve', run, id, '--as', as, ...seen];
  switch (as) {
    case 'approve':
      return { words: ['approve', run, id, ...seen], purpose: 'execute it exactly as shown' };
    case 'some':
      return {
        words: ['approve', run, id, ...seen, '--some'],
        purpose: 'execute only what needs no approval, or --some a1,a3: only these actions',
      };
    case 'deny':
      return {
        words: ['deny', run, id, ...seen, '--note', 'TEXT'],
        purpose: 'refuse it; the note is for the model',
      };
    case 'edit':
      return {
        words: ['edit', run, id, ...seen, '--arguments', 'JSON'],
        purpose: 'execute it with these arguments instead',
      };
    case 'answer':
      if (kind === 'plan') {
        return {
          words: ['answer', run, id, 'edit', 'TEXT', ...seen],
          purpose: 'request a new plan with your change',
        };
      }
      return kind === 'question'
        ? { words: ['answer', run, id, 'TEXT', ...seen], purpose: 'answer the question' }
        : {
            words: ['answer', run, id, ...seen, '--result', 'JSON'],
            purpose: 'provide the result of the call yourself',
          };
    case 'raise':
      return {
        words: ['raise', run, id, ...seen, '--steps', 'N'],
        purpose: 'raise the limit by this amount',
      };
    case 'stop':
      return { words: resolve, purpose: 'keep the limit, and stop' };
    case 'happened':
      return {
        words: [...resolve, '--result', 'JSON'],
        purpose: 'it happened; pass its result to the model',
      };
    case 'retry':
      return { words: resolve, purpose: 'it did not happen: call the tool again' };
    case 'abandon':
      return { words: resolve, purpose: 'give up the call and inform the model' };
    case 'accept':
      // The digest covers the pinned form of the tool, not the current one.
      return {
        words: [...resolve, ...(definition === undefined ? [] : ['--definition', definition])],
        purpose: 'accept the tool in its current form',
      };
  }
}
