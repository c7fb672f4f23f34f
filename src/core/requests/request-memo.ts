import type { RunState } from '../state/state.js';
import type { Request } from '../transcript/request.js';
import { askingWork, toRequest } from './open-requests.js';
import { presentRequest } from './presentation.js';
import { withFixOfDecider } from './refusal.js';

/** The memo's entry for each request of a waiting run, so an inbox needs only one query. */
interface RequestNote {
  readonly id: string;
  readonly kind: Request['kind'];
  readonly tool?: string;
  readonly digest: string;
  /** At most 300 characters; of a plan, and of what an MCP server asks, at most 900. */
  readonly shown: string;
  /** Unix time in ms. */
  readonly raisedAt: number;
  /** Unix time in ms; null: never. */
  readonly expiresAt: number | null;
  /** The command that decides. */
  readonly fix: string;
  /** Who may decide; absent: anyone, and in a run that an earlier version began. */
  readonly deciders?: Request['deciders'];
  /** A decision was made and is being checked on a worker. */
  readonly checking?: true;
}

/** The field of the memo. */
interface RequestMemo {
  readonly requests: readonly RequestNote[];
  /** The total number of open requests, if the memo does not have all of them. */
  readonly requestsTotal?: number;
}

const MAX_NOTES = 20;

/** Returns the memo of a run with open requests. `run`: its workflow id, for the commands. */
export function stateMemo(state: RunState, run: string): RequestMemo {
  const asking = askingWork(state);
  const first = asking.slice(0, MAX_NOTES).map((work) => toRequest(state, work, run));
  // Whoever reads the memo is unknown.
  if (state.config.revised) {
    const fixed = first.map((request) => withFixOfDecider(state, request, run));
    return requestMemo(fixed, asking.length);
  }
  const { requests, ...more } = requestMemo(first, asking.length);
  return { requests: requests.map(asBefore), ...more };
}

/** Returns an entry as an earlier version records it: it does not change when a check begins or ends. */
function asBefore(note: RequestNote): RequestNote {
  const { checking: _, deciders: __, ...rest } = note;
  return rest;
}

/**
 * Returns the memo's entries for the open requests, oldest first, as far as they fit. `total`: their number, if
 * `requests` has only those that fit.
 */
export function requestMemo(requests: readonly Request[], total = requests.length): RequestMemo {
  const notes = requests.slice(0, MAX_NOTES).map(requestNote);
  return { requests: notes, ...(total > notes.length && { requestsTotal: total }) };
}

function requestNote(request: Request): RequestNote {
  const { id, kind, tool, digest, raisedAt, expiresAt, fix, deciders, checking } = request;
  return {
    id,
    kind,
    ...(tool !== undefined && { tool }),
    digest,
    shown: presentRequest(request).notice,
    raisedAt,
    expiresAt,
    fix,
    ...(deciders.length > 0 && { deciders }),
    ...(checking && { checking }),
  };
}
