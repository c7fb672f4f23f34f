import type { Request } from './request.js';

/** What the memo of a waiting run has of each request, so that an inbox is one query. */
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
  /** The number of all open requests, if the memo does not have all of them. */
  readonly requestsTotal?: number;
}

const MAX_NOTES = 20;
const MAX_SHOWN_CHARACTERS = 300;

/** Returns what the memo has of the open requests: the oldest ones. */
export function requestMemo(requests: readonly Request[]): RequestMemo {
  const notes = requests.slice(0, MAX_NOTES).map(requestNote);
  const total = requests.length;
  return { requests: notes, ...(total > notes.length && { requestsTotal: total }) };
}

function requestNote(request: Request): RequestNote {
  const { id, kind, tool, digest, shown, question, raisedAt, expiresAt, fix } = request;
  return {
    id,
    kind,
    ...(tool !== undefined && { tool }),
    digest,
    shown: cut(question === undefined ? shown : `${shown}\n${question}`),
    raisedAt,
    expiresAt,
    fix,
  };
}

function cut(text: string): string {
  if (text.length <= MAX_SHOWN_CHARACTERS) return text;
  return `${text.slice(0, MAX_SHOWN_CHARACTERS - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
