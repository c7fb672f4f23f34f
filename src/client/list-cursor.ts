import { createHash } from 'node:crypto';
import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { show } from '../core/text/format-value.js';
import type { ListFilter } from './list-filter.js';

/** Where a page of a list begins. */
export interface ListPlace {
  /** The time from which durations such as `2h` count back: that of the first page. */
  readonly now: number;
  /** The server's token of the page. */
  readonly token: Uint8Array;
}

/** What a cursor is for: the namespace and the filter of its list. */
interface CursorScope {
  readonly namespace: string;
  readonly filter: ListFilter;
}

const cursorContent = z.strictObject({
  now: z.int(),
  token: z.base64(),
  /** The digest of the scope. */
  scope: z.string(),
  /** The digest of the other fields. */
  sum: z.string(),
});
type CursorContent = z.infer<typeof cursorContent>;

/** Returns the text that a caller passes to get the page at `place`. */
export function writeCursor({ now, token }: ListPlace, scope: CursorScope): string {
  const fields = {
    now,
    token: Buffer.from(token).toString('base64'),
    scope: scopeDigest(scope),
  };
  return Buffer.from(JSON.stringify({ ...fields, sum: sumOf(fields) })).toString('base64url');
}

/**
 * Returns the place of a cursor; without one, the beginning of the list. Throws an `InputError` for
 * a damaged cursor, and for a cursor of another list.
 */
export function readCursor(scope: CursorScope): ListPlace {
  const { cursor } = scope.filter;
  if (cursor === undefined) return { now: Date.now(), token: new Uint8Array() };
  const content = decode(cursor);
  if (content === null || content.sum !== sumOf(content)) {
    throw new InputError(
      `cursor: expected the cursor of a list, got ${show(cursor)}; copy it completely, or omit it for the first page`,
    );
  }
  if (content.scope === scopeDigest(scope)) {
    return { now: content.now, token: Buffer.from(content.token, 'base64') };
  }
  throw new InputError(
    `cursor: expected the cursor of a list with the same filter and namespace, got ${show(cursor)}; ` +
      'repeat the options of the previous page, or omit it for the first page',
  );
}

function decode(cursor: string): CursorContent | null {
  try {
    const json: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return cursorContent.safeParse(json).data ?? null;
  } catch {
    return null;
  }
}

function sumOf({ now, token, scope }: Omit<CursorContent, 'sum'>): string {
  return digest([now, token, scope]);
}

/** The limit may differ from page to page. */
function scopeDigest({ namespace, filter }: CursorScope): string {
  const { agent, status, tag, idPrefix, since, before } = filter;
  return digest([namespace, agent, status, tag, idPrefix, since, before]);
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 16);
}
