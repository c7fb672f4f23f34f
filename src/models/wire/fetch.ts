import { isObject } from '../../core/text/json.js';
import type { BaseUrl } from './client.js';

/** The dispatcher's type; `never` if the types of `fetch` are the browser's. */
type Dispatcher = RequestInit extends { dispatcher?: infer D } ? NonNullable<D> : never;

/** Returns the options that the clients of all providers share. */
export function wireClientOptions({
  baseUrl: { url, search },
  timeoutMs,
}: {
  readonly baseUrl: BaseUrl;
  readonly timeoutMs: number;
}) {
  const dispatcher = createNoTimeoutDispatcher();
  return {
    baseURL: url,
    // Only Temporal retries.
    maxRetries: 0,
    // The clients would write a query in another form.
    fetch: async (request: string | URL | Request, init?: RequestInit) =>
      await fetchWithShortErrors(typeof request === 'string' ? request + search : request, init),
    timeout: timeoutMs,
    // The client would write bodies and broken streams to the console.
    logLevel: 'off' as const,
    // A redirect would send the key and the prompt elsewhere.
    fetchOptions: { redirect: 'manual' as const, ...(dispatcher !== undefined && { dispatcher }) },
  };
}

/**
 * Creates a dispatcher without the timeouts of Node's `fetch`, which fails if headers or the next
 * bytes take 300 s: a model that reasons for longer would be cut off on every attempt, at full
 * price. It uses the same connections; the caller has its own clocks. Returns undefined if a Node
 * version stores its connections elsewhere; Node's timeouts then apply.
 */
export function createNoTimeoutDispatcher(): Dispatcher | undefined {
  const shared = getGlobalDispatcher();
  if (shared === undefined) return undefined;
  const dispatch: Dispatcher['dispatch'] = (options, handler) =>
    // Looked up again: a proxy may have been set since.
    (getGlobalDispatcher() ?? shared).dispatch(
      { ...options, headersTimeout: 0, bodyTimeout: 0 },
      handler,
    );
  const patient: unknown = { dispatch };
  return isDispatcher(patient) ? patient : undefined;
}

/**
 * The place where Node's `fetch`, and packages that replace its connections, such as a proxy, store
 * them.
 */
const GLOBAL_DISPATCHER = Symbol.for('undici.globalDispatcher.1');

function getGlobalDispatcher(): Dispatcher | undefined {
  // Node sets it on the first use of `fetch` or its classes.
  void globalThis.Response;
  const dispatcher: unknown = Reflect.get(globalThis, GLOBAL_DISPATCHER);
  return isDispatcher(dispatcher) ? dispatcher : undefined;
}

/** Whether a value is a dispatcher. `fetch` uses no other method of it. */
function isDispatcher(value: unknown): value is Dispatcher {
  return isObject(value) && typeof value['dispatch'] === 'function';
}

/** Maximum bytes that are read from an error's body. */
const MAX_ERROR_BYTES = 256 * 1024;

/** Calls `fetch`, and truncates the body of an error, which may be endless. */
async function fetchWithShortErrors(
  url: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const response = await fetch(url, init);
  const { ok, body, status, statusText, headers } = response;
  if (ok || body === null) return response;
  let left = MAX_ERROR_BYTES;
  const head = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, left));
      left -= chunk.byteLength;
      if (left <= 0) controller.terminate();
    },
  });
  return new Response(body.pipeThrough(head), { status, statusText, headers });
}
