import { headOf } from '../text/whole-text.js';
import { shownActions } from '../plan/confirm-plan.js';
import { briefPlan } from '../plan/show-plan.js';
import type { Request } from './request.js';

/** The memo's entry for each request of a waiting run, so an inbox needs only one query. */
export interface RequestNote {
  readonly id: string;
  readonly kind: Request['kind'];
  readonly tool?: string;
  readonly digest: string;
  /** At most 300 characters; of a plan, at most 900. */
  readonly shown: string;
  /** Unix time in ms. */
  readonly raisedAt: number;
  /** Unix time in ms; null: never. */
  readonly expiresAt: number | null;
  /** The command that decides. */
  readonly fix: string;
}

/** The field of the memo. */
export interface RequestMemo {
  readonly requests: readonly RequestNote[];
  /** The total number of open requests, if the memo does not have all of them. */
  readonly requestsTotal?: number;
}

const MAX_NOTES = 20;
const MAX_SHOWN_CHARACTERS = 300;
const MAX_PLAN_CHARACTERS = 900;

/** Returns the memo's entries for the open requests, oldest first, as far as they fit. */
export function requestMemo(requests: readonly Request[]): RequestMemo {
  const notes = requests.slice(0, MAX_NOTES).map(requestNote);
  const total = requests.length;
  return { requests: notes, ...(total > notes.length && { requestsTotal: total }) };
}

function requestNote(request: Request): RequestNote {
  const { id, kind, tool, digest, raisedAt, expiresAt, fix } = request;
  return {
    id,
    kind,
    ...(tool !== undefined && { tool }),
    digest,
    shown: briefly(request),
    raisedAt,
    expiresAt,
    fix,
  };
}

/** Returns what an inbox or a notice shows of a request: the beginning of its text, or a brief plan. */
export function briefly(request: Pick<Request, 'kind' | 'shown' | 'arguments'>): string {
  const actions = request.kind === 'plan' ? shownActions(request.arguments ?? '') : null;
  return actions === null ? shortened(request.shown) : briefPlan(actions, MAX_PLAN_CHARACTERS);
}

/** Returns the beginning of a text of a request for an inbox or a notice; `…` marks a cut. */
export function shortened(text: string): string {
  if (text.length <= MAX_SHOWN_CHARACTERS) return text;
  return `${headOf(text, MAX_SHOWN_CHARACTERS - 1)}…`;
}
