import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { createGate, type Barrier, type Gate } from './barrier.js';
import { play, type Exchange } from './play.js';
import { recordRequest, type RequestEnd, type StubRequest } from './requests.js';
import { createScript, type Answer } from './script.js';
import { refusedByApi } from './responses-check.js';
import { type Step, reply } from './steps.js';
import { isObject } from '../core/json.js';

export interface StubOptions {
  /** How many of the newest requests `requests` keeps; default: all. Long runs send megabytes. */
  readonly keep?: number;
  /** What a server of Chat Completions demands back with the calls of a turn; it answers 400 without. */
  readonly demands?: StubDemand;
}

/**
 * A model server that does what a test tells it, on a port of 127.0.0.1, in the wire format of
 * OpenAI's Chat Completions and of its Responses API, the same script for both.
 *
 * A request is answered by the queue of its conversation if it has one, else by the common queue,
 * then by the functions given to `answer`, then by `fallback`; else with status 400.
 */
export interface Stub {
  /** For `OPENAI_BASE_URL`. */
  readonly baseUrl: string;
  /** What was asked of the model so far, in the order of arrival. */
  readonly requests: readonly StubRequest[];
  /** How many requests have come, kept or not. */
  readonly requestCount: number;
  script(...steps: readonly Step[]): void;
  /** A queue for the conversations whose first user message contains the marker. */
  scriptFor(marker: string, ...steps: readonly Step[]): void;
  /** Answers by the request alone, for many runs at once and for runs that are killed. */
  answer(answer: Answer): void;
  /** Asked last. */
  fallback(answer: Answer): void;
  /** The barrier of this name; steps refer to it by name. */
  barrier(name: string): Barrier;
  /** Throws when steps are left over, or when a request found none. */
  assertConsumed(): void;
  /** Breaks off what is open and frees the port. */
  close(): Promise<void>;
}

const RESPONSES = '/v1/responses';
const MODELS = JSON.stringify({ object: 'list', data: [{ id: 'stub', object: 'model' }] });

function createGates(): (name: string) => Gate {
  const gates = new Map<string, Gate>();
  return (name) => {
    const gate = gates.get(name) ?? createGate();
    gates.set(name, gate);
    return gate;
  };
}

/** Counts equal bodies without keeping them. */
function createCounter(): (text: string) => number {
  const counts = new Map<string, number>();
  return (text) => {
    const digest = createHash('sha1').update(text).digest('base64');
    const count = (counts.get(digest) ?? 0) + 1;
    counts.set(digest, count);
    return count;
  };
}

function json(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
}

/**
 * Starts a stub; every test has its own.
 *
 * @example
 * ```ts
 * import { reply, startStub } from 'perdure/testing';
 *
 * const stub = await startStub();
 * process.env['OPENAI_BASE_URL'] = stub.baseUrl;
 * stub.script(reply.calls([{ name: 'today', arguments: {} }]), reply.text('It is Monday.'));
 * // … run an agent, then:
 * stub.assertConsumed();
 * await stub.close();
 * ```
 */
export async function startStub({ keep = Infinity, demands }: StubOptions = {}): Promise<Stub> {
  const script = createScript();
  const gate = createGates();
  const countOf = createCounter();
  const requests: StubRequest[] = [];
  let requestCount = 0;
  let isClosing = false;

  const complete = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text = await readText(incoming);
    requestCount += 1;
    const { request, end } = recordRequest(text, {
      api: incoming.url === RESPONSES ? 'responses' : 'chat',
      number: requestCount,
      attempt: countOf(text),
      headers: incoming.headers,
    });
    requests.push(request);
    if (requests.length > keep) requests.shift();
    const gone = new AbortController();
    let otherwise: RequestEnd = 'client';
    response.on('close', () => {
      gone.abort();
      if (isClosing) otherwise = 'closed';
      end(response.writableFinished ? 'answered' : otherwise);
    });
    const exchange: Exchange = {
      response,
      request,
      signal: gone.signal,
      gate,
      cutting: () => void (otherwise = 'cut'),
    };
    try {
      const refused =
        request.api === 'responses'
          ? refusedByApi(request.body)
          : refusedByServer(request.body, demands);
      await play(refused ?? script.next(request), exchange);
    } catch (error) {
      // A client that goes away ends its own exchange; anything else is the test's mistake.
      if (!gone.signal.aborted) script.blame(error);
      response.destroy();
    }
  };

  const server = createServer((incoming, response) => {
    const path = `${incoming.method} ${incoming.url}`;
    if (path === 'GET /v1/models') return json(response, 200, MODELS);
    if (path !== 'POST /v1/chat/completions' && path !== `POST ${RESPONSES}`) {
      return json(response, 404, JSON.stringify({ error: { message: `no ${path} here` } }));
    }
    complete(incoming, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;

  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    get requestCount() {
      return requestCount;
    },
    script: (...steps) => script.add(steps),
    scriptFor: (marker, ...steps) => script.addFor(marker, steps),
    answer: (answer) => script.answer(answer),
    fallback: (answer) => script.fallback(answer),
    barrier: (name) => gate(name).barrier,
    assertConsumed: () => script.assertConsumed(),
    close() {
      isClosing = true;
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

/** `reasoning_content`: as DeepSeek with thinking does; `thought_signature`: as Gemini. */
export type StubDemand = 'reasoning_content' | 'thought_signature';

type Some = Readonly<Record<string, unknown>>;

function listOf(value: unknown): readonly Some[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Calls of one message are signed together, by the first of them. */
function isSigned(message: Some): boolean {
  const extra = listOf(message['tool_calls'])[0]?.['extra_content'];
  const google = isObject(extra) ? extra['google'] : undefined;
  return isObject(google) && typeof google['thought_signature'] === 'string';
}

const WORDS: Readonly<Record<StubDemand, (index: number) => string>> = {
  reasoning_content: (index) =>
    `Missing \`reasoning_content\` field in the assistant message at message index ${index}.`,
  thought_signature: (index) =>
    `Function call is missing a thought_signature in functionCall parts, position ${index}.`,
};

/** The answer to a request that brings calls back without what was sent with them; for the turn under way. */
function refusedByServer(body: Some, demand: StubDemand | undefined): Step | undefined {
  if (demand === undefined) return undefined;
  const messages = listOf(body['messages']);
  const begin = messages.findLastIndex(({ role }) => role === 'user');
  const index = messages.findIndex((message, place) => {
    if (place < begin || listOf(message['tool_calls']).length === 0) return false;
    if (demand === 'thought_signature') return !isSigned(message);
    return typeof message['reasoning_content'] !== 'string';
  });
  if (index < 0) return undefined;
  return reply.error(400, { message: WORDS[demand](index), type: 'invalid_request_error' });
}
