import type { Request } from '../../core/requests/request.js';
import { visible } from '../../core/text/summaries.js';
import { UsageError } from '../exit-codes.js';
import { SHOWN_DIGITS } from './request-commands.js';

/**
 * Throws a `UsageError` unless `given` is a digest or its beginning: hex digits, at least as many as are
 * shown. Needs no server.
 */
export function checkDigestForm(given: string): void {
  if (/^[0-9a-f]+$/i.test(given) && given.length >= SHOWN_DIGITS && given.length <= 64) return;
  throw new UsageError(
    `--digest: expected ${SHOWN_DIGITS} to 64 hex digits, as the request is shown with; got ${visible(given)}`,
  );
}

/** Throws if the digest that a person has seen is not that of the request. */
export function checkDigest(given: string, { id, digest }: Pick<Request, 'id' | 'digest'>): void {
  checkDigestForm(given);
  if (digest.startsWith(given.toLowerCase())) return;
  throw new Error(
    `--digest: expected ${digest.slice(0, SHOWN_DIGITS)}, got ${visible(given)}: request ${visible(id)} is not ` +
      'what you have seen; look at it again before you decide',
  );
}
