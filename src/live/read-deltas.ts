import { get, type IncomingMessage } from 'node:http';
import { isObject, parseJson, textOf } from '../core/json.js';
import type { LiveAttempt } from './attempt.js';
import type { Frame, PlacedPiece } from './delta.js';
import type { LiveWorker } from './worker-files.js';

/** A worker that sends not even a sign of life for so long is taken for lost. */
const SILENCE_MS = 45_000;
/** A line has what came in 40 ms, or all that is kept of an attempt. */
const LONGEST_LINE = 16 * 1024 * 1024;

/**
 * Reads what a worker tells of a run, until it ends that or the signal aborts. Rejects where it cannot
 * be reached: with code `ECONNREFUSED` nobody is there.
 */
export async function readDeltas(
  { url, token }: Pick<LiveWorker, 'url' | 'token'>,
  id: string,
  { frame, signal }: { readonly frame: (frame: Frame) => void; readonly signal: AbortSignal },
): Promise<void> {
  const response = await request(
    new URL(`/runs/${encodeURIComponent(id)}/deltas`, url),
    token,
    signal,
  );
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`${url} answers with status ${response.statusCode}`);
  }
  response.setTimeout(SILENCE_MS, () => response.destroy(new Error(`${url} is silent`)));
  let rest = '';
  for await (const text of response.setEncoding('utf8')) {
    const lines = `${rest}${String(text)}`.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LONGEST_LINE) throw new Error(`${url} sends a line without an end`);
    for (const line of lines) {
      const told = readFrame(line);
      if (told !== null) frame(told);
    }
  }
}

function request(url: URL, token: string, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
    get(url, { headers, signal, agent: false }, resolve).on('error', reject);
  });
}

/** Null for a sign of life, and for what is no frame. */
function readFrame(line: string): Frame | null {
  const told = line === '' ? undefined : parseJson(line);
  if (!isObject(told) || !isObject(told['attempt']) || !Array.isArray(told['pieces'])) return null;
  const attempt = readAttempt(told['attempt']);
  const pieces = told['pieces'].map((piece) => readPiece(piece));
  const known = pieces.filter((piece) => piece !== null);
  return attempt === null || known.length < pieces.length ? null : { attempt, pieces: known };
}

function readAttempt(told: Record<string, unknown>): LiveAttempt | null {
  const [attempt, turn, step] = [told['attempt'], told['turn'], told['step']];
  if (!isCount(attempt) || !isCount(turn) || !isCount(step)) return null;
  return {
    segment: textOf(told, 'segment'),
    activity: textOf(told, 'activity'),
    attempt,
    turn,
    step,
  };
}

function readPiece(told: unknown): PlacedPiece | null {
  if (!isObject(told) || !isCount(told['offset'])) return null;
  const { offset, kind, index, name } = told;
  if (kind !== 'text' && kind !== 'reasoning' && kind !== 'call') return null;
  return {
    kind,
    text: textOf(told, 'text'),
    ...(isCount(index) && { index }),
    ...(typeof name === 'string' && { name }),
    offset,
  };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
