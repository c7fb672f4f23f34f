import type { Hono } from 'hono';
import { z } from 'zod';
import { storedId } from '../client/run-ids.js';
import { InputError, RefusedError } from '../core/errors.js';
import { commandLine } from '../core/requests/commands.js';
import { isObject, parseForeignJson } from '../core/text/json.js';
import { show, visibleJson } from '../core/text/text.js';
import type { RefusalReason } from '../core/transcript/request.js';
import type { OpenedStream } from '../live/run-streams.js';
import type { StreamEvent } from '../live/stream.js';
import { describeIssues } from '../validation/check-options.js';
import { requestIssue } from '../validation/request-issues.js';
import { type Place, openRun } from './access.js';
import { HttpError, withFix } from './errors.js';
import type { GuardLimits, Guarded, GuardedContext, StreamCounter } from './guard.js';
import { type Caller, type Handlers, createHandlers } from './handlers.js';
import { withMeaning } from './input-fields.js';
import { OPERATIONS, type Operation, type OperationName, pathFields } from './operations.js';
import { sseEvent, sseResponse } from '../live/sse.js';

/** What the routes of an interface need from the server. */
export interface DoorParts {
  readonly place: Place;
  readonly limits: GuardLimits;
  /** How long a request waits for the end of a turn, in ms. */
  readonly waitMs: number;
  readonly streams: StreamCounter;
  readonly isVerified: boolean;
  /** Logs what a caller is not told. `what`: what has failed. */
  readonly logFailure: (what: string, error: unknown) => void;
}

/** Adds the routes of the HTTP API to a server. */
export function addApiRoutes(app: Hono<Guarded>, parts: DoorParts): void {
  const handlers = createHandlers(parts.place);
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    const path = operation.path.replaceAll(/\{(\w+)\}/g, ':$1');
    app.on(operation.method.toUpperCase(), path, async (context) => {
      const input = await readInput(context, operation);
      const caller = callerOf(context, parts);
      const called = call(handlers, name, input, caller).catch((error: unknown) => {
        throw withCommand(error, context.req.param('run'));
      });
      return answerJson(await called, operation.status);
    });
  }
  app.get('/v1/runs/:run/events', (context) => streamEvents(context, parts));
}

/** The reasons of a refusal after which the request is not open, so that only the status of its run shows it. */
const CLOSED: readonly (RefusalReason | null)[] = [
  null,
  'decided',
  'expired',
  'unknown_request',
  'run_ended',
];

/** Adds what shows the run or its requests to a refusal that says no fix, as the command does. */
function withCommand(error: unknown, run: string | undefined): unknown {
  if (run === undefined || !RefusedError.isInstance(error)) return error;
  const { message, reason } = error;
  if (withFix(message).fix !== null) return error;
  const words = [CLOSED.includes(reason) ? 'status' : 'inbox', run];
  const fix = `see it with: ${commandLine('perdure', words)}`;
  return new RefusedError(`${message}; ${fix}`, { reason, cause: error });
}

/** Calls the handler of an operation with the input that its schema has read. */
async function call(
  handlers: Handlers,
  name: string,
  input: unknown,
  caller: Caller,
): Promise<unknown> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema of `name` has read the input
  return await handlers[name as OperationName](input as never, caller);
}

/** The interfaces by the beginnings of their paths. All other paths are those of the HTTP API. */
const DOORS = {
  '/mcp': 'mcp',
  '/v1/ui/': 'ui-stream',
  '/v1/ag-ui/': 'ag-ui',
  '/v1/responses': 'openai',
  '/v1/conversations': 'openai',
  '/v1/chat/': 'openai',
};

function doorOf(path: string): string {
  return Object.entries(DOORS).find(([start]) => path.startsWith(start))?.[1] ?? 'http';
}

/** Returns who sent a request. */
export function callerOf(
  context: GuardedContext,
  { isVerified, streams }: Pick<DoorParts, 'isVerified' | 'streams'>,
): Caller {
  const principal = context.get('principal');
  return {
    principal,
    door: isVerified ? doorOf(context.req.path) : null,
    operationKey: context.req.header('idempotency-key') || null,
    signal: context.req.raw.signal,
    hold: (over) => streams.add(principal, over),
  };
}

/** Returns a JSON response in which hidden characters are escapes. */
export function answerJson(
  value: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(`${visibleJson(value)}\n`, {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
  });
}

/** Reads the input of an operation from path, query, and body. Throws an `InputError`. */
async function readInput(context: GuardedContext, operation: Operation): Promise<unknown> {
  const { method, path, input } = operation;
  const inPath = Object.fromEntries(
    pathFields(path).map((name) => [name, context.req.param(name) ?? '']),
  );
  const given = method === 'post' ? await readBody(context) : readQuery(context);
  const twice = pathFields(path).find((name) => Object.hasOwn(given, name));
  if (twice !== undefined) {
    throw new InputError(`${twice}: expected it in the path only, got it twice; remove one`);
  }
  return readFields(input, { ...given, ...inPath }, Object.keys(inPath));
}

/** Reads the fields of a request. Throws an `InputError` with a line for each fault. `inPath`: those in the path. */
function readFields<Input extends z.ZodObject>(
  input: Input,
  value: Readonly<Record<string, unknown>>,
  inPath: readonly string[],
): z.output<Input> {
  const read = input.safeParse(value, { error: requestIssue });
  if (read.success) return read.data;
  const known = Object.keys(input.shape).filter((name) => !inPath.includes(name));
  const keys = {
    known,
    unrecognized: (names: string, _: string, meant: string | undefined) => {
      if (known.length === 0) return `${names}: expected no fields; remove it`;
      if (meant !== undefined)
        return `${names}: expected a field of this request; did you mean ${show(meant)}?`;
      const possible = known.length === 1 ? `only ${known.join()}` : `one of ${known.join(', ')}`;
      return `${names}: expected ${possible}; correct or remove it`;
    },
  };
  const lines = describeIssues(read.error.issues, value, { keys });
  throw new InputError(lines.map((line) => withMeaning(line.slice(2), input)).join('\n'));
}

/** Returns the body of a request as an object; an empty body is an empty object. */
export async function readBody(context: GuardedContext): Promise<Record<string, unknown>> {
  const text = utf8Text(await context.req.arrayBuffer());
  if (text === '') return {};
  const value = jsonOf(text);
  if (isObject(value)) return value;
  throw new InputError(`body: expected an object, got ${show(value)}; send a JSON object`);
}

/** Returns the text of a body. Throws an `InputError`: other bytes would be replaced in what the run gets. */
export function utf8Text(bytes: ArrayBuffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new InputError('body: expected text in UTF-8, got other bytes; encode it as UTF-8');
  }
}

/** Returns the JSON of a body. Throws an `InputError`. */
function jsonOf(text: string): unknown {
  const json = parseForeignJson(text);
  if (json.ok) return json.value;
  throw new InputError(
    json.isJson
      ? `body: ${json.problem}`
      : `body: expected JSON, got ${show(text)} (${json.problem}); send a JSON object`,
  );
}

function readQuery(context: GuardedContext): Record<string, unknown> {
  const all = context.req.queries();
  return Object.fromEntries(
    Object.entries(all).map(([name, values]) => {
      if (values.length === 1) return [name, values[0]];
      throw new InputError(`${name}: expected one value, got ${values.length}; remove the others`);
    }),
  );
}

/** Most readers get the same event objects, so each is serialized once. */
const serialized = new WeakMap<StreamEvent, string>();

function serialize(event: StreamEvent): string {
  const known = serialized.get(event);
  if (known !== undefined) return known;
  const { position, ...data } = event;
  const text = sseEvent({ id: position, event: event.type, data: visibleJson(data) });
  serialized.set(event, text);
  return text;
}

/** Milliseconds after which a browser reconnects if its connection breaks. */
const RETRY_MS = 1_000;

async function streamEvents(context: GuardedContext, parts: DoorParts): Promise<Response> {
  const { place, limits } = parts;
  const principal = context.get('principal');
  const run = context.req.param('run') ?? '';
  const query = readFields(
    z.strictObject({
      after: z.string().exactOptional(),
      lastEventId: z.string().exactOptional(),
    }),
    readQuery(context),
    [],
  );
  await openRun(place, { principal, right: 'read', run });
  // A reader that reconnects repeats the URL, and adds its last position as a header. Readers for browsers
  // that send keys (`event-source-polyfill`) add it to the URL.
  const last = context.req.header('last-event-id') || query.lastEventId || '';
  const after = last || query.after || '';
  return await whileRead(context, parts, async (over) => {
    const stream = await openRunStream(place, { run, after, over }).catch((error: unknown) => {
      throw InputError.isInstance(error) ? namedPosition(error, last !== '') : error;
    });
    if (!stream.isPast) {
      const headers = after === 'now' ? { 'last-event-id': stream.position } : {};
      return sseResponse(eventBlocks(stream, after), { over, readMs: limits.readMs, headers });
    }
    over.abort();
    // Status 204 stops a browser from reconnecting.
    return new Response(null, { status: 204 });
  });
}

/** Returns the refusal of a position by the name that it has in the request. */
function namedPosition(error: InputError, isHeader: boolean): InputError {
  const message = error.message
    .replace(
      /^from: expected the offset of an event/,
      `after: expected the id of an event${isHeader ? '' : ', or now'}`,
    )
    .replace(/^after/, isHeader ? 'Last-Event-ID' : 'after');
  return new InputError(message, { cause: error });
}

/** Opens the stream of a run until its controller aborts. */
export async function openRunStream(
  { client, archive, streams }: Pick<Place, 'client' | 'archive' | 'streams'>,
  {
    run,
    after = '',
    over,
  }: { readonly run: string; readonly after?: string; readonly over: AbortController },
): Promise<OpenedStream> {
  const id = await storedId(client, run, archive);
  const stream = await streams.open(id, { after, signal: over.signal });
  over.signal.addEventListener('abort', () => stream.close(), { once: true });
  // The reader may have left while the stream was opened.
  if (over.signal.aborted) stream.close();
  return stream;
}

/**
 * Answers with a stream, or after a wait. It counts for its principal until its controller aborts: by
 * `respond`, at the end of the stream, if `respond` rejects, or when the reader is gone.
 */
export async function whileRead(
  context: GuardedContext,
  { streams }: Pick<DoorParts, 'streams'>,
  respond: (over: AbortController) => Promise<Response>,
): Promise<Response> {
  if (context.req.method === 'HEAD') {
    // The body of the answer would never be read, and never be canceled.
    throw new HttpError(405, 'unsupported', 'method: expected GET, got HEAD', {
      headers: { allow: 'GET' },
    });
  }
  const over = new AbortController();
  streams.add(context.get('principal'), over.signal);
  const { signal } = context.req.raw;
  if (signal.aborted) over.abort();
  signal.addEventListener('abort', () => over.abort(), { once: true });
  try {
    return await respond(over);
  } catch (error) {
    over.abort();
    throw error;
  }
}

async function* eventBlocks(
  { batches, position }: OpenedStream,
  after: string,
): AsyncGenerator<string, void, undefined> {
  yield `retry: ${RETRY_MS}\n\n`;
  // A reader whose connection breaks before the first event comes back here, and not at a later `now`.
  if (after === 'now') yield `id: ${position}\n\n`;
  for await (const batch of batches) for (const event of batch) yield serialize(event);
}
