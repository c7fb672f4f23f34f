/** Bytes of an error's body that are read; no honest one comes near it. */
const MOST_BYTES = 256 * 1024;

/** `fetch`, but of an answer that is an error only the beginning: its body may have no end. */
export async function fetchWithShortErrors(
  url: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const response = await fetch(url, init);
  const { ok, body, status, statusText, headers } = response;
  if (ok || body === null) return response;
  let left = MOST_BYTES;
  const head = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, left));
      left -= chunk.byteLength;
      if (left <= 0) controller.terminate();
    },
  });
  return new Response(body.pipeThrough(head), { status, statusText, headers });
}
