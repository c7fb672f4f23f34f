import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Gate } from './barrier.js';
import type { StubRequest } from './requests.js';
import { responseFor } from './responses.js';
import { responseSse } from './responses-sse.js';
import { sseText } from './sse.js';
import type { CutHow, Delivery, Step } from './steps.js';

/** One request's way back. */
export interface Exchange {
  readonly response: ServerResponse;
  readonly request: StubRequest;
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
  readonly gate: (name: string) => Gate;
  /** Called before the script breaks the connection off. */
  readonly cutting: () => void;
}

interface Payload {
  readonly status: number;
  readonly type: string;
  readonly body: Buffer;
}

function payloadOf(step: Exclude<Step, { type: 'reset' }>, request: StubRequest): Payload {
  if (step.type === 'raw') {
    return { status: step.status, type: 'application/json', body: Buffer.from(step.body) };
  }
  const isResponse = request.api === 'responses';
  const answer = isResponse ? responseFor(step, request) : step.completion;
  if (request.body['stream'] !== true) {
    return { status: 200, type: 'application/json', body: Buffer.from(JSON.stringify(answer)) };
  }
  const text = isResponse
    ? responseSse(answer, step.delivery.sse)
    : sseText(answer, step.delivery.sse);
  return { status: 200, type: 'text/event-stream', body: Buffer.from(text) };
}

/** Resolves when the bytes are with the operating system, so that a reset cannot overtake them. */
function write({ response }: Exchange, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    response.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

/** Gives the client time to read: Node takes a reset that comes with data for an orderly end. */
const BEFORE_RESET_MS = 20;

function breakOff(exchange: Exchange, how: Exclude<CutHow, 'end'>): void {
  exchange.cutting();
  const { socket } = exchange.response;
  if (how === 'reset') socket?.resetAndDestroy();
  else socket?.end();
}

async function dripped(
  exchange: Exchange,
  body: Buffer,
  { bytes, everyMs }: NonNullable<Delivery['drip']>,
): Promise<void> {
  for (let at = 0; at < body.length; at += bytes) {
    // One after the other is the point.
    // oxlint-disable-next-line no-await-in-loop
    await write(exchange, body.subarray(at, at + bytes));
    // oxlint-disable-next-line no-await-in-loop
    await sleep(everyMs, undefined, { signal: exchange.signal });
  }
}

/** Where so many events of a stream end; the whole body where there are not so many. */
function endOfEvent(body: Buffer, events: number): number {
  const ends = [...body.toString('latin1').matchAll(/(\r?\n)\1/g)];
  const end = events === 0 ? 0 : ends[events - 1];
  return typeof end === 'number' ? end : end ? end.index + end[0].length : body.length;
}

/** What is left of the body when the first part is out and the barrier has opened. */
async function held(exchange: Exchange, body: Buffer, delivery: Delivery): Promise<Buffer> {
  const { holdAfterEvent: hold } = delivery;
  if (hold === undefined) return body;
  const first = endOfEvent(body, hold.event);
  if (first > 0) await write(exchange, body.subarray(0, first));
  await exchange.gate(hold.barrier).wait(exchange.signal);
  return body.subarray(first);
}

async function sendBody(exchange: Exchange, whole: Buffer, delivery: Delivery): Promise<void> {
  const { response } = exchange;
  const { cut, drip } = delivery;
  const body = await held(exchange, whole, delivery);
  const sent = cut === undefined ? body : body.subarray(0, cut.afterBytes);
  if (drip !== undefined) await dripped(exchange, sent, drip);
  else if (cut !== undefined && sent.length > 0) await write(exchange, sent);
  if (cut === undefined) {
    response.end(drip === undefined ? sent : undefined);
    return;
  }
  if (cut.how === 'end') {
    response.end();
    return;
  }
  if (cut.how === 'reset') await sleep(BEFORE_RESET_MS, undefined, { signal: exchange.signal });
  breakOff(exchange, cut.how);
}

/** Answers as the step says. Rejects when the client goes away meanwhile. */
export async function play(step: Step, exchange: Exchange): Promise<void> {
  const { response, signal } = exchange;
  const { delivery } = step;
  if (delivery.holdBeforeHeaders !== undefined) {
    await exchange.gate(delivery.holdBeforeHeaders).wait(signal);
  }
  if (delivery.delayMs !== undefined) await sleep(delivery.delayMs, undefined, { signal });
  if (step.type === 'reset') {
    breakOff(exchange, 'reset');
    return;
  }
  const { status, type, body } = payloadOf(step, exchange.request);
  response.writeHead(status, { 'content-type': type, ...delivery.headers });
  if (delivery.holdAfterHeaders !== undefined) {
    response.flushHeaders();
    await exchange.gate(delivery.holdAfterHeaders).wait(signal);
  }
  await sendBody(exchange, body, delivery);
}
