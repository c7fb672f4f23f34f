import { withTexts } from '../core/requests/commands.js';
import type { ReadStatus } from './below.js';

/** Returns a text in which each command can be pasted by its reader. */
export type Runnable = (text: string) => string;

interface Fixable {
  readonly fix: string;
}

/** Returns a request with a command that its reader can paste. */
export function runnableFix<One extends Fixable>(request: One, runnable: Runnable): One {
  return { ...request, fix: runnable(request.fix) };
}

/** The same for a list of requests. */
export function runnableList<List extends { readonly requests: readonly Fixable[] }>(
  list: List,
  runnable: Runnable,
): List {
  return { ...list, requests: list.requests.map((one) => runnableFix(one, runnable)) };
}

/** Returns a status whose commands, also those about the runs below, can be pasted by its reader. */
export function runnableStatus<Status extends ReadStatus>(
  status: Status,
  runnable: Runnable,
): Status {
  const { below, blockedBelow } = status;
  return {
    ...withTexts(status, runnable),
    ...(below && { below: below.map((one) => runnableFix(one, runnable)) }),
    ...(blockedBelow && {
      blockedBelow: blockedBelow.map((one) => ({ ...one, message: runnable(one.message) })),
    }),
  };
}
