import { ModelError } from 'perdure';

/** By who can mend it: that is all that the engine goes by. */
function kindOf(status: number) {
  if (status === 401 || status === 403) return 'credentials';
  if (status === 404) return 'model';
  return status === 408 || status === 429 || status >= 500 ? 'retry' : 'request';
}

/** The error of a response with another status than 200. */
export function failureOf({ status, headers }: Response, text: string): ModelError {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return new ModelError(`${status} from Ollama: ${text.slice(0, 300)}`, {
    kind: kindOf(status),
    type: `http_${status}`,
    status,
    ...(seconds >= 0 && { retryAfterMs: seconds * 1_000 }),
  });
}

/** An answer that is none, or not a whole one; the next attempt may fare better. */
export function unusable(type: string, what: string): ModelError {
  return new ModelError(`Ollama ${what}`, { kind: 'retry', type });
}

export function lostConnection(error: unknown): ModelError {
  const message = error instanceof Error ? error.message : String(error);
  return new ModelError(`No whole answer from Ollama: ${message}; is it running?`, {
    kind: 'retry',
    type: 'connection',
  });
}
