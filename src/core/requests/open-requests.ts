import type { RunState } from '../state.js';
import type { Work, AskingWork } from '../work/work.js';
import type { Request } from './request.js';
import { toRequest } from './request-view.js';

/** Returns the work that waits for decisions, oldest request first. */
export function askingWork({ work }: RunState): readonly AskingWork[] {
  const asking = work.filter(isAsking);
  if (asking.length < 2) return asking;
  return asking.toSorted((one, other) => numberOf(one) - numberOf(other));
}

function numberOf({ request }: AskingWork): number {
  return Number(request.id.slice(1));
}

function isAsking(work: Work): work is AskingWork {
  return work.request !== undefined;
}

/** Returns the open requests, oldest first. `run`: the run's workflow id, for the commands. */
export function openRequests(state: RunState, run: string): readonly Request[] {
  return askingWork(state).map((work) => toRequest(state, work, run));
}
