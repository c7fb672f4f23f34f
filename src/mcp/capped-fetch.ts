import { mcpTextProblem, TOO_LONG, MAX_MESSAGE_BYTES } from './message-limits.js';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Returns a `fetch` for a server that may answer without end: a body that is one message, and each
 * event of a stream, may be at most as long as the longest message. Events are passed on whole,
 * because the SDK's reader scans an event again with each part of it. `onBreach` receives a
 * description of the breach.
 */
export function cappedFetch(onBreach: (reason: string) => void): typeof fetch {
  return async (url, init) => {
    const response = await fetch(url, init);
    const { body, status, statusText, headers } = response;
    if (body === null) return response;
    const isStream = (headers.get('content-type') ?? '').includes('event-stream');
    const capped = body.pipeThrough(wholeEvents(isStream, onBreach));
    const same = new Response(capped, { status, statusText, headers });
    // The URL of the response shows whether a redirect left the origin.
    return Object.defineProperty(same, 'url', { value: response.url });
  };
}

/** Passes on whole events, or the whole body at its end. Fails if a message is too long. */
function wholeEvents(
  isStream: boolean,
  onBreach: (reason: string) => void,
): TransformStream<Uint8Array, Uint8Array> {
  let open: Uint8Array[] = [];
  let bytes = 0;
  let [last, before] = [0, 0];

  /** Returns the offset after the last event that ends in a chunk, or -1 if none does. */
  const lastEnd = (chunk: Uint8Array): number => {
    let end = -1;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      const isBreak = byte === LINE_FEED || byte === CARRIAGE_RETURN;
      const isPair = byte === LINE_FEED && last === CARRIAGE_RETURN && before === LINE_FEED;
      if (isBreak && (byte === last || isPair)) end = at + 1;
      [before, last] = [last, byte];
    }
    return end;
  };
  const take = (end: Uint8Array): Uint8Array => {
    const whole = Buffer.concat([...open, end]);
    [open, bytes] = [[], 0];
    const problem = mcpTextProblem(whole);
    if (problem !== null) throw breach(problem);
    return whole;
  };
  const breach = (problem: string): Error => {
    onBreach(problem);
    return new Error(problem);
  };

  return new TransformStream({
    transform(chunk, controller) {
      const end = isStream ? lastEnd(chunk) : -1;
      if (end > 0) controller.enqueue(take(chunk.subarray(0, end)));
      const rest = end > 0 ? chunk.subarray(end) : chunk;
      open.push(rest);
      bytes += rest.length;
      if (bytes > MAX_MESSAGE_BYTES) throw breach(TOO_LONG);
    },
    flush(controller) {
      if (bytes > 0) controller.enqueue(take(new Uint8Array()));
    },
  });
}
