import { formatDuration } from '../core/text/duration.js';
import { get, type IncomingMessage } from 'node:http';
import { isObject, parseJson, textField } from '../core/json.js';
import type { LiveAttempt } from './attempt.js';
import type { Delta, DeltaBatch } from './delta.js';
import type { LiveWorker } from './worker-files.js';

/** A worker that sends not even a keep-alive for this long is lost. */
const SILENCE_MS = 45_000;
/** A line holds the deltas of 40 ms, or all that is kept of an attempt. */
const MAX_LINE_UNITS = 16 * 1024 * 1024;

/**
 * Reads a worker's deltas of a run until the worker ends the response or the signal aborts. Rejects
 * if the worker cannot be reached; the code `ECONNREFUSED` means that no process listens there.
 */
export async function readDeltas(
  { url, token }: Pick<LiveWorker, 'url' | 'token'>,
  id: string,
  { batch, signal }: { readonly batch: (batch: DeltaBatch) => void; readonly signal: AbortSignal },
): Promise<void> {
  const response = await request(
    new URL(`/runs/${encodeURIComponent(id)}/deltas`, url),
    token,
    signal,
  );
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`${url}: expected status 200, got ${response.statusCode}`);
  }
  response.setTimeout(SILENCE_MS, () => {
    response.destroy(
      new Error(`${url}: sent nothing for ${formatDuration(SILENCE_MS, { as: 'exact' })}`),
    );
  });
  let rest = '';
  for await (const text of response.setEncoding('utf8')) {
    const lines = `${rest}${String(text)}`.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_UNITS) throw new Error(`${url}: sent a line without an end`);
    for (const line of lines) {
      const read = parseBatch(line);
      if (read !== null) batch(read);
    }
  }
}

function request(url: URL, token: string, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
    get(url, { headers, signal, agent: false }, resolve).on('error', reject);
  });
}

/** Parses a line. Returns null for a keep-alive, and for anything that is not a batch. */
function parseBatch(line: string): DeltaBatch | null {
  const json = line === '' ? undefined : parseJson(line);
  if (!isObject(json) || !isObject(json['attempt']) || !Array.isArray(json['deltas'])) return null;
  const attempt = parseAttempt(json['attempt']);
  const deltas = json['deltas'].map((delta) => parseDelta(delta)).filter((delta) => delta !== null);
  return attempt === null || deltas.length < json['deltas'].length ? null : { attempt, deltas };
}

function parseAttempt(json: Record<string, unknown>): LiveAttempt | null {
  const [attempt, turn, step] = [json['attempt'], json['turn'], json['step']];
  if (!isCount(attempt) || !isCount(turn) || !isCount(step)) return null;
  return {
    segment: textField(json, 'segment'),
    activity: textField(json, 'activity'),
    attempt,
    turn,
    step,
  };
}

function parseDelta(json: unknown): Delta | null {
  if (!isObject(json) || !isCount(json['offset'])) return null;
  const { offset, kind, index, name } = json;
  const text = textField(json, 'text');
  if (kind === 'text' || kind === 'reasoning') return { kind, text, offset };
  if (kind !== 'call' || !isCount(index)) return null;
  return { kind, text, index, ...(typeof name === 'string' && { name }), offset };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
