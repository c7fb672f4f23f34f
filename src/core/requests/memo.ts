import { headOf } from '../text/whole-text.js';
import type { Request } from './request.js';

/** The memo's entry for each request of a waiting run, so an inbox needs only one query. */
export interface RequestNote {
  readonly id: string;
  readonly kind: Request['kind'];
  readonly tool?: string;
  readonly digest: string;
  /** At most 300 characters. */
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

/** Returns the memo's entries for the open requests, oldest first, as far as they fit. */
export function requestMemo(requests: readonly Request[]): RequestMemo {
  const notes = requests.slice(0, MAX_NOTES).map(requestNote);
  const total = requests.length;
  return { requests: notes, ...(total > notes.length && { requestsTotal: total }) };
}

function requestNote(request: Request): RequestNote {
  const { id, kind, tool, digest, shown, raisedAt, expiresAt, fix } = request;
  return {
    id,
    kind,
    ...(tool !== undefined && { tool }),
    digest,
    shown: shortened(shown),
    raisedAt,
    expiresAt,
    fix,
  };
}

/** Returns the beginning of a text of a request for an inbox or a notice; `…` marks a cut. */
export function shortened(text: string): string {
  if (text.length <= MAX_SHOWN_CHARACTERS) return text;
  return `${headOf(text, MAX_SHOWN_CHARACTERS - 1)}…`;
}
