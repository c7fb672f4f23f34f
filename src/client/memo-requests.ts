import { isObject, textField } from '../core/json.js';
import { OFFERED, type Request, type RequestKind } from '../core/requests/request.js';

/** The field of a run's memo that contains its open requests, oldest first. */
const MEMO_FIELD = 'requests';
/** The field that contains their number if there are too many for the memo. */
const MEMO_TOTAL = 'requestsTotal';

/** An open request in the memo of its run. `client.request` reads the whole request. */
export interface OpenRequest extends Pick<
  Request,
  'id' | 'kind' | 'tool' | 'digest' | 'expiresAt' | 'raisedAt' | 'fix'
> {
  /** The id of the run that asks. */
  readonly run: string;
  /** The name of the run's agent; null if unknown. */
  readonly agent: string | null;
  /** For people: at most 300 characters; of a plan, its actions in at most 900. */
  readonly shown: string;
}

/** The open requests in a memo. */
export interface MemoRequests {
  readonly requests: readonly OpenRequest[];
  /** The number of open requests that did not fit in the memo. */
  readonly more: number;
}

/**
 * Reads the requests in the memo of a run. Skips everything that is not a request: a memo may come
 * from another version, or from another program.
 */
export function memoRequests(
  memo: Readonly<Record<string, unknown>> | undefined,
  of: Pick<OpenRequest, 'run' | 'agent'>,
): MemoRequests {
  const list: unknown = memo?.[MEMO_FIELD];
  const total: unknown = memo?.[MEMO_TOTAL];
  const requests = (Array.isArray(list) ? list : []).flatMap((each) => readOne(each, of) ?? []);
  const counted = typeof total === 'number' && Number.isSafeInteger(total) ? total : 0;
  return { requests, more: Math.max(0, counted - requests.length) };
}

function readOne(value: unknown, of: Pick<OpenRequest, 'run' | 'agent'>): OpenRequest | null {
  if (!isObject(value)) return null;
  const { kind, expiresAt = null, raisedAt, tool } = value;
  const [id, digest] = [textField(value, 'id'), textField(value, 'digest')];
  if (id === '' || !/^[0-9a-f]{64}$/.test(digest) || !isKind(kind)) return null;
  if (!isTime(raisedAt) || !(expiresAt === null || isTime(expiresAt))) return null;
  return {
    ...of,
    id,
    kind,
    ...(typeof tool === 'string' && { tool }),
    digest,
    shown: textField(value, 'shown'),
    raisedAt,
    expiresAt,
    fix: textField(value, 'fix'),
  };
}

function isKind(value: unknown): value is RequestKind {
  return typeof value === 'string' && Object.hasOwn(OFFERED, value);
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
