// Requests to the server that serves this page. The key of the principal is kept in this tab only.

const KEY = 'perdure-key';

export class ApiError extends Error {
  constructor(status, { code = 'unexpected', message = `status ${status}`, fix = null, reason } = {}) {
    super(message);
    Object.assign(this, { status, code, fix, reason });
  }
}

/** Whether the server has refused a request, so that asking again is in vain. */
export const isRefusal = (error) => error instanceof ApiError && error.status < 500 && error.status !== 429;

export const hasKey = () => sessionStorage.getItem(KEY) !== null;

export const setKey = (key) => sessionStorage.setItem(KEY, key);

function headers(more = {}) {
  const key = sessionStorage.getItem(KEY);
  return { ...(key && { authorization: `Bearer ${key}` }), ...more };
}

async function answerOf(response) {
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new ApiError(response.status, body.error);
}

export async function get(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const search = new URLSearchParams(given).toString();
  return await answerOf(await fetch(search ? `${path}?${search}` : path, { headers: headers() }));
}

export async function post(path, body = {}, operation = crypto.randomUUID()) {
  const more = { 'content-type': 'application/json', 'idempotency-key': operation };
  const sent = { method: 'POST', headers: headers(more), body: JSON.stringify(body) };
  return await answerOf(await fetch(path, sent));
}

export const runPath = (id, rest = '') => `/v1/runs/${encodeURIComponent(id)}${rest}`;

/** Calls `on` for each event of a run, and connects again at its position until the signal aborts. */
export async function follow(id, { on, onState, signal }) {
  let position = '';
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 10_000)) {
    try {
      const more = position === '' ? {} : { 'last-event-id': position };
      const response = await fetch(runPath(id, '/events'), { headers: headers(more), signal });
      if (response.status === 204) return onState('over');
      if (!response.ok) await answerOf(response);
      onState('live');
      for await (const events of blocks(response.body)) {
        wait = 500;
        position = events.at(-1)?.position ?? position;
        on(events);
        if (events.some(({ type }) => type === 'run-ended')) return onState('over');
      }
    } catch (error) {
      if (signal.aborted) return;
      if (isRefusal(error)) throw error;
    }
    onState('lost');
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** Yields the events of each packet of a stream. */
async function* blocks(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    const events = parts.flatMap((part) => {
      const line = (name) =>
        part.split('\n').find((one) => one.startsWith(name))?.slice(name.length);
      const data = line('data: ');
      return data === undefined ? [] : [{ ...JSON.parse(data), position: line('id: ') ?? '' }];
    });
    if (events.length > 0) yield events;
  }
}
