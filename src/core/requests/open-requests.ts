import type { RunState } from '../state.js';
import type { Work } from '../work/work.js';
import type { RaisedRequest, Request } from './request.js';
import { toRequest } from './request-view.js';

/** Work that waits for a decision. */
export type AskingWork = Work & { readonly request: RaisedRequest };

/** Returns the work that waits for decisions, oldest request first. */
export function askingWork({ work }: RunState): readonly AskingWork[] {
  const asking = work.filter(isAsking);
  const number = ({ request }: AskingWork): number => Number(request.id.slice(1));
  return asking.length < 2 ? asking : asking.toSorted((one, other) => number(one) - number(other));
}

function isAsking(work: Work): work is AskingWork {
  return work.request !== undefined;
}

/** Returns the open requests, oldest first. `run`: the run's workflow id, for the commands. */
export function openRequests(state: RunState, run: string): readonly Request[] {
  return askingWork(state).map((work) => toRequest(state, work, run));
}
