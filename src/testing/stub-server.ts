import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { createGate, type Barrier, type Gate, play, type StubExchange } from './play.js';
import { recordRequest, type RequestEnd, type StubApi, type StubRequest } from './wire-input.js';
import { createScript, type Answer, type Script } from './script.js';
import { refuseMessages } from './messages.js';
import { refuseResponses } from './responses.js';
import { replyError, type Reply, type Step } from './replies.js';
import { isObject, parseJson } from '../core/text/json.js';
import { answerFormat, answerTextOf, conformProblem, strictFault } from './strict-check.js';
import { assertOptionNames } from '../validation/option-names.js';

/** How a stub server treats requests. */
export interface StubOptions {
  /**
   * The number of newest requests that `requests` keeps; default: all. Long runs send megabytes.
   */
  readonly keep?: number;
  /**
   * The provider field that Chat Completions requires with the calls of a turn; without it, status
   * 400.
   */
  readonly demands?: StubDemand;
  /**
   * Whether schemas with `strict` are enforced, as OpenAI does (default): one outside the strict
   * subset is refused with status 400, and `assertConsumed` throws if a scripted text does not fit
   * the schema of its request. With false, any text is sent, as by servers that ignore schemas.
   */
  readonly enforces?: boolean;
}

/**
 * A scripted model server on a port of 127.0.0.1. It speaks OpenAI's Chat Completions and Responses
 * APIs and Anthropic's Messages API with the same script.
 *
 * A request is answered from the queue of its conversation if it has one, else from the common
 * queue, then by the functions given to `answer`, then by `fallback`; else with status 400.
 */
export interface Stub {
  /** The value for OPENAI_BASE_URL and ANTHROPIC_BASE_URL. */
  readonly baseUrl: string;
  /** The requests so far, in the order of arrival. */
  readonly requests: readonly StubRequest[];
  /** The number of all requests, kept or not. */
  readonly requestCount: number;
  script(...steps: readonly Reply[]): void;
  /** Adds to the queue of the conversations whose first user message contains the marker. */
  scriptFor(marker: string, ...steps: readonly Reply[]): void;
  /**
   * Adds a function that answers from the request alone, for many runs at once and for killed runs.
   */
  answer(answer: Answer): void;
  /** Sets the function that is called last. */
  fallback(answer: Answer): void;
  /** Returns the barrier of this name, to which steps refer. */
  barrier(name: string): Barrier;
  /** Throws an `Error` if steps are left over, or if there was no step for a request. */
  assertConsumed(): void;
  /** Closes all connections and frees the port. */
  close(): Promise<void>;
}

const PATHS: Readonly<Record<string, StubApi>> = {
  'POST /v1/chat/completions': 'chat',
  'POST /v1/responses': 'responses',
  'POST /v1/messages': 'messages',
};
const MODELS = JSON.stringify({ object: 'list', data: [{ id: 'stub', object: 'model' }] });

/**
 * `reasoning_content`: as DeepSeek requires while reasoning; `thought_signature`: as Gemini
 * requires.
 */
export type StubDemand = 'reasoning_content' | 'thought_signature';

type AnyObject = Readonly<Record<string, unknown>>;

const MESSAGES: Readonly<Record<StubDemand, (index: number) => string>> = {
  reasoning_content: (index) =>
    `Missing \`reasoning_content\` field in the assistant message at message index ${index}.`,
  thought_signature: (index) =>
    `Function call is missing a thought_signature in functionCall parts, position ${index}.`,
};

/**
 * Starts a stub. Each test should have its own.
 *
 * @example
 * ```ts
 * import { replyCalls, replyText, startStub } from 'perdure/testing';
 *
 * const stub = await startStub();
 * process.env['OPENAI_BASE_URL'] = stub.baseUrl;
 * stub.script(replyCalls([{ name: 'today', arguments: {} }]), replyText('It is Monday.'));
 * // … run an agent, then:
 * stub.assertConsumed();
 * await stub.close();
 * ```
 */
export async function startStub(options: StubOptions = {}): Promise<Stub> {
  assertOptionNames<StubOptions>(options, { keep: true, demands: true, enforces: true });
  const { keep = Infinity } = options;
  const script = createScript();
  const gate = createGates();
  const countBody = createCounter();
  const requests: StubRequest[] = [];
  let requestCount = 0;
  let isClosing = false;

  const complete = async (
    api: StubApi,
    incoming: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> => {
    const text = await readText(incoming);
    requestCount += 1;
    const { request, end } = recordRequest(text, {
      api,
      number: requestCount,
      attempt: countBody(text),
      headers: incoming.headers,
    });
    requests.push(request);
    if (requests.length > keep) requests.shift();
    const gone = new AbortController();
    let unanswered: RequestEnd = 'client';
    response.on('close', () => {
      gone.abort();
      if (isClosing) unanswered = 'closed';
      end(response.writableFinished ? 'answered' : unanswered);
    });
    const exchange: StubExchange = {
      response,
      request,
      signal: gone.signal,
      gate,
      onCut: () => void (unanswered = 'cut'),
    };
    try {
      await play(nextStep(script, request, options), exchange);
    } catch (error) {
      // A client that disconnects ends its exchange; any other error is a mistake of the test.
      if (!gone.signal.aborted) script.fail(error);
      response.destroy();
    }
  };

  const server = createServer((incoming, response) => {
    const path = `${incoming.method} ${incoming.url}`;
    if (path === 'GET /v1/models') return json(response, 200, MODELS);
    const api = PATHS[path];
    if (api === undefined) {
      return json(response, 404, JSON.stringify({ error: { message: `no ${path} here` } }));
    }
    complete(api, incoming, response).catch(() => response.destroy());
  });
  const port = await listen(server);

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

/** Listens on a free port of 127.0.0.1 and returns it. */
async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

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

function refuse(request: StubRequest, demands: StubDemand | undefined): Step | undefined {
  switch (request.api) {
    case 'chat':
      return refuseChat(request.body, demands);
    case 'responses':
      return refuseResponses(request.body);
    case 'messages':
      return refuseMessages(request);
  }
}

/** Returns the answer to a request: a refusal, or the next step of the script. */
function nextStep(
  script: Script,
  request: StubRequest,
  { demands, enforces = true }: StubOptions,
): Step {
  const refusal = refuse(request, demands) ?? (enforces ? refuseSchema(request) : undefined);
  if (refusal !== undefined) return refusal;
  const step = script.next(request);
  const misfit = enforces ? misfitOf(step, request) : null;
  if (misfit !== null) script.fail(new Error(misfit));
  return step;
}

/** Returns the refusal of a request with a schema that cannot be enforced. */
function refuseSchema(request: StubRequest): Step | undefined {
  const fault = strictFault(request);
  if (fault === undefined) return undefined;
  return replyError(400, { ...fault, type: 'invalid_request_error', code: null }).wire;
}

/** Returns the fault of a scripted text that a provider could not write under the schema; or null. */
function misfitOf(step: Step, request: StubRequest): string | null {
  const format = answerFormat(request);
  const text = step.type === 'completion' ? answerTextOf(step.completion) : undefined;
  if (format === undefined || text === undefined) return null;
  const value = parseJson(text);
  const problem = value === undefined ? 'it is not JSON' : conformProblem(value, format.schema);
  if (problem === null) return null;
  return (
    `a scripted reply does not fit the strict schema of ${format.name}: ${problem}; correct the reply, ` +
    'or start the stub with `enforces: false`'
  );
}

/** Returns the refusal of a request whose calls of the current turn lack the demanded field. */
function refuseChat(body: AnyObject, demand: StubDemand | undefined): Step | undefined {
  if (demand === undefined) return undefined;
  const messages = listObjects(body['messages']);
  const begin = messages.findLastIndex(({ role }) => role === 'user');
  const index = messages.findIndex((message, place) => {
    if (place < begin || listObjects(message['tool_calls']).length === 0) return false;
    if (demand === 'thought_signature') return !isSigned(message);
    return typeof message['reasoning_content'] !== 'string';
  });
  if (index < 0) return undefined;
  return replyError(400, { message: MESSAGES[demand](index), type: 'invalid_request_error' }).wire;
}

function listObjects(value: unknown): readonly AnyObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Returns whether a message is signed; its first call carries the signature for all of them. */
function isSigned(message: AnyObject): boolean {
  const extra = listObjects(message['tool_calls'])[0]?.['extra_content'];
  const google = isObject(extra) ? extra['google'] : undefined;
  return isObject(google) && typeof google['thought_signature'] === 'string';
}

function json(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
}
