import { ModelError } from 'perdure/models';

/** Classifies a status by who can fix it; the engine's decision depends on that alone. */
function toErrorKind(status: number) {
  if (status === 401 || status === 403) return 'credentials';
  if (status === 404) return 'model';
  return status === 408 || status === 429 || status >= 500 ? 'retry' : 'request';
}

/** Creates the error for a response whose status is not 200. */
export function toModelError({ status, headers }: Response, text: string): ModelError {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return new ModelError(`${status} from Ollama: ${text.slice(0, 300)}`, {
    kind: toErrorKind(status),
    type: `http_${status}`,
    status,
    ...(seconds >= 0 && { retryAfterMs: seconds * 1_000 }),
  });
}

/** Creates the error for an answer that is missing or incomplete. Another attempt may succeed. */
export function unusable(type: string, what: string): ModelError {
  return new ModelError(`Ollama ${what}`, { kind: 'retry', type });
}

/** Creates the error for a request that failed without a complete response. */
export function lostConnection(error: unknown): ModelError {
  const message = error instanceof Error ? error.message : String(error);
  return new ModelError(
    `Ollama: expected a complete answer, got ${message}; check that it is running`,
    {
      kind: 'retry',
      type: 'connection',
    },
  );
}
