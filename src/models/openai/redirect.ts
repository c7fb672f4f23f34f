import { ModelError } from '../model-error.js';
import { detailsFrom, type CallPlace, type ProviderError } from './errors.js';

/**
 * The `ModelError` for an answer that sends the request elsewhere; null for any other one. Redirects are
 * not followed: the key and the conversation are for the provider that was named, and for no other.
 */
export function redirectError(
  { status, headers }: ProviderError,
  place: CallPlace,
): ModelError | null {
  if (status === undefined || status < 300 || status > 399) return null;
  const target = originOf(headers.get('location') ?? '', place.baseUrl);
  return new ModelError(
    `${status} from ${place.baseUrl}: expected an answer, got a redirect to ${target}, which is not followed; ` +
      'if that is the provider, set OPENAI_BASE_URL to its address',
    detailsFrom({ kind: 'model', type: 'redirected' }, headers, { status }),
  );
}

/** Without path and query, which may hold a token. */
function originOf(location: string, base: string): string {
  if (!URL.canParse(location, base)) return 'nowhere';
  const { origin, protocol } = new URL(location, base);
  return origin === 'null' ? protocol : origin;
}
