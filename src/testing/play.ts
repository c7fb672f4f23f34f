import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../core/text/json.js';
import { toMs } from '../core/text/text.js';
import { createMessage, writeMessageEvents } from './messages.js';
import { UNNUMBERED, type CutHow, type Delivery, type SseOptions, type Step } from './replies.js';
import { createResponse, writeResponse } from './responses.js';
import { writeCompletion } from './script.js';
import type { StubApi, StubRequest } from './wire-input.js';

/** A point at which answers of the stub wait until a test releases them. */
export interface Barrier {
  /** Resolves when the first answer has arrived. */
  readonly reached: Promise<void>;
  /** Resolves when `count` answers have arrived in total. */
  reachedBy(count: number): Promise<void>;
  /** The number of answers that have arrived in total. */
  readonly arrived: number;
  /** The number of answers that wait now, without those whose client has disconnected. */
  readonly waiting: number;
  /** Opens the barrier permanently: waiting answers continue, and later ones do not wait. */
  release(): void;
}

export interface Gate {
  readonly barrier: Barrier;
  /** Resolves when the barrier opens; rejects with the signal's reason if that aborts first. */
  wait(signal: AbortSignal): Promise<void>;
}

interface Watcher {
  readonly count: number;
  readonly notify: () => void;
}

export function createGate(): Gate {
  let arrived = 0;
  let watchers: readonly Watcher[] = [];
  let isOpen = false;
  const held = new Set<() => void>();

  const reachedBy = (count: number): Promise<void> =>
    new Promise((notify) => {
      if (arrived >= count) notify();
      else watchers = [...watchers, { count, notify }];
    });

  const arrive = (): void => {
    arrived += 1;
    for (const watcher of watchers) if (watcher.count <= arrived) watcher.notify();
    watchers = watchers.filter((watcher) => watcher.count > arrived);
  };

  const parked = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const abort = (): void => {
        held.delete(pass);
        reject(signal.reason);
      };
      const pass = (): void => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      signal.addEventListener('abort', abort, { once: true });
      held.add(pass);
    });

  return {
    barrier: {
      reached: reachedBy(1),
      reachedBy,
      get arrived() {
        return arrived;
      },
      get waiting() {
        return held.size;
      },
      release() {
        isOpen = true;
        for (const pass of held) pass();
        held.clear();
      },
    },
    async wait(signal) {
      signal.throwIfAborted();
      const opened = isOpen ? undefined : parked(signal);
      arrive();
      await opened;
    },
  };
}

type Completion = Extract<Step, { readonly type: 'completion' }>;

/** One request and its response in progress. */
export interface StubExchange {
  readonly response: ServerResponse;
  readonly request: StubRequest;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  readonly gate: (name: string) => Gate;
  /** Called before the script cuts the connection. */
  readonly onCut: () => void;
}

interface Payload {
  readonly status: number;
  readonly type: string;
  readonly body: Buffer;
}

/** Time for the client to read: Node mistakes a reset that arrives with data for an orderly end. */
const BEFORE_RESET_MS = 20;

/** Answers as the step describes. Rejects if the client disconnects meanwhile. */
export async function play(step: Step, exchange: StubExchange): Promise<void> {
  const { response, signal } = exchange;
  const { delivery } = step;
  if (delivery.holdBeforeHeaders !== undefined) {
    await exchange.gate(delivery.holdBeforeHeaders).wait(signal);
  }
  if (delivery.delay !== undefined) await sleep(toMs(delivery.delay), undefined, { signal });
  if (step.type === 'reset') {
    cutConnection(exchange, 'reset');
    return;
  }
  const { status, type, body } = createPayload(step, exchange.request);
  response.writeHead(status, { 'content-type': type, ...delivery.headers });
  if (delivery.holdAfterHeaders !== undefined) {
    response.flushHeaders();
    await exchange.gate(delivery.holdAfterHeaders).wait(signal);
  }
  await sendBody(exchange, body, delivery);
}

function cutConnection(exchange: StubExchange, how: Exclude<CutHow, 'end'>): void {
  exchange.onCut();
  const { socket } = exchange.response;
  if (how === 'reset') socket?.resetAndDestroy();
  else socket?.end();
}

/** How each API writes an answer: whole, and as a stream. */
const WRITERS: Readonly<
  Record<
    StubApi,
    {
      readonly create: (step: Completion, request: StubRequest) => JsonObject;
      readonly stream: (answer: JsonObject, options?: SseOptions) => string;
    }
  >
> = {
  chat: {
    create: ({ completion }, { number }) =>
      completion['id'] === UNNUMBERED ? { ...completion, id: `chatcmpl-${number}` } : completion,
    stream: writeCompletion,
  },
  responses: { create: createResponse, stream: writeResponse },
  messages: { create: createMessage, stream: writeMessageEvents },
};

function createPayload(step: Exclude<Step, { type: 'reset' }>, request: StubRequest): Payload {
  if (step.type === 'raw') {
    return { status: step.status, type: 'application/json', body: Buffer.from(step.body) };
  }
  const { create, stream } = WRITERS[request.api];
  const answer = create(step, request);
  if (request.body['stream'] !== true) {
    return { status: 200, type: 'application/json', body: Buffer.from(JSON.stringify(answer)) };
  }
  const text = stream(answer, step.delivery.sse);
  return { status: 200, type: 'text/event-stream', body: Buffer.from(text) };
}

async function sendBody(exchange: StubExchange, whole: Buffer, delivery: Delivery): Promise<void> {
  const { response } = exchange;
  const { cut, drip: pace } = delivery;
  const body = await hold(exchange, whole, delivery);
  const sent = cut === undefined ? body : body.subarray(0, cut.afterBytes);
  if (pace !== undefined) await drip(exchange, sent, pace);
  else if (cut !== undefined && sent.length > 0) await write(exchange, sent);
  if (cut === undefined) {
    response.end(pace === undefined ? sent : undefined);
    return;
  }
  if (cut.how === 'end') {
    response.end();
    return;
  }
  if (cut.how === 'reset') await sleep(BEFORE_RESET_MS, undefined, { signal: exchange.signal });
  cutConnection(exchange, cut.how);
}

async function drip(
  exchange: StubExchange,
  body: Buffer,
  { bytes, every }: NonNullable<Delivery['drip']>,
): Promise<void> {
  for (let at = 0; at < body.length; at += bytes) {
    // oxlint-disable-next-line no-await-in-loop -- the bytes go one after the other
    await write(exchange, body.subarray(at, at + bytes));
    // oxlint-disable-next-line no-await-in-loop -- the pauses are the purpose
    await sleep(toMs(every), undefined, { signal: exchange.signal });
  }
}

/** Resolves once the operating system has the bytes, so that a reset cannot overtake them. */
function write({ response }: StubExchange, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    response.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

/** Sends the first part, waits at the barrier, and returns the rest of the body. */
async function hold(exchange: StubExchange, body: Buffer, delivery: Delivery): Promise<Buffer> {
  const { holdAfterEvent } = delivery;
  if (holdAfterEvent === undefined) return body;
  const first = endOfEvent(body, holdAfterEvent.event);
  if (first > 0) await write(exchange, body.subarray(0, first));
  await exchange.gate(holdAfterEvent.barrier).wait(exchange.signal);
  return body.subarray(first);
}

/**
 * Returns the offset after the first `events` events of a stream; the length of a body with fewer.
 */
function endOfEvent(body: Buffer, events: number): number {
  const ends = [...body.toString('latin1').matchAll(/(\r?\n)\1/g)];
  const end = events === 0 ? 0 : ends[events - 1];
  return typeof end === 'number' ? end : end ? end.index + end[0].length : body.length;
}
