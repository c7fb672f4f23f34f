import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Hono } from 'hono';
import { z } from 'zod';
import type { PerdureClient } from '../client/client-types.js';
import { openClient, partsOfClient } from '../client/create-client.js';
import { type Config, type ServeOptions, serveOptions } from '../config.js';
import { InputError } from '../core/errors.js';
import { withCalled } from '../agents/agent-definition.js';
import { isObject, parseJson } from '../core/text/json.js';
import { percentDecoded } from '../core/text/text.js';
import { withProgram } from '../core/requests/commands.js';
import { redactMessage } from '../secrets/redact.js';
import type { ConnectionSettings } from '../temporal/connection.js';
import { hashedId } from '../temporal/stored-ids.js';
import {
  type OptionSchemas,
  anyFunction,
  checkOptions,
  expected,
} from '../validation/check-options.js';
import { ownVersion } from '../storage/files.js';
import type { Runnable } from '../client/runnable-texts.js';
import type { Place } from './access.js';
import { addAgUiRoutes } from './ag-ui.js';
import { type DoorParts, addApiRoutes, answerJson } from './api-routes.js';
import { errorAnswer, errorBody, noRoute } from './errors.js';
import {
  type Guarded,
  checkBody,
  checkPrincipal,
  checkSite,
  limitsInForce,
  streamCounter,
} from './guard.js';
import { MCP_PATH, addMcpRoute } from './mcp.js';
import { addOpenAiRoutes, inFormOf } from './openai.js';
import { authenticator, hasKeys } from './principals.js';
import { readResponseId, responseId } from './response-ids.js';
import { addUiRoutes } from './ui-stream.js';
import { OPERATIONS, type Operation, pathFields } from './operations.js';

/** Options of `createServer`. */
export interface ServerOptions extends ConnectionSettings {
  /**
   * The configuration of the workers: its agents are listed, and its `serve` applies. Default:
   * none.
   */
  readonly config?: Config;
  /** Who may use the server; default: `serve` of the configuration. */
  readonly serve?: ServeOptions;
  /** A client from `createClient`, which `close` does not close; default: a client of its own. */
  readonly client?: PerdureClient;
  /** The environment for keys, addresses, and PERDURE_HOME; default: that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The workers' PERDURE_HOME; default: that of `env`, else `.perdure`. */
  readonly home?: string;
  /** The task queue of the workers; default: that of `config`, else PERDURE_TASK_QUEUE, else `perdure`. */
  readonly taskQueue?: string;
  /** The name of the principal of a server without keys; default `local`. */
  readonly localName?: string;
  /** Writes one line about a request that failed, without its body; default: to standard error. */
  readonly log?: (line: string) => void;
}

/** A server as a fetch handler, for any program that serves HTTP. */
export interface HttpServer {
  /** Answers a request. Never rejects. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Whether principals prove who they are; if not, only requests to this machine are answered. */
  readonly isVerified: boolean;
  /** Closes the connection to Temporal. Runs are not affected. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const serverOptions = z.strictObject({
  config: expected<Config>(
    'a configuration; make it with defineConfig({…})',
    (config) => isObject(config) && Array.isArray(config['agents']),
  ).optional(),
  serve: serveOptions.optional(),
  client: z.unknown().optional(),
  env: z.unknown().optional(),
  home: z.string().optional(),
  taskQueue: z.string().optional(),
  address: z.string().optional(),
  namespace: z.string().optional(),
  localName: z.string().min(1).optional(),
  log: anyFunction.optional(),
} satisfies OptionSchemas<ServerOptions>);

/** What only the command and tests set. */
interface Setup {
  /** For the rates of requests. */
  readonly clock?: () => number;
  /** How long a request waits for the end of a turn. */
  readonly waitMs?: number;
  /** Makes the commands in a text runnable in any shell of this machine. */
  readonly runnable?: Runnable;
}

/** Clients of OpenAI give up, and try again, after ten minutes. */
const WAIT_MS = 9 * 60_000;

/** Creates a server; see `createServer` of `perdure/http`. The rest is what tests change. */
export async function openServer(
  options: ServerOptions,
  { clock = () => performance.now(), waitMs = WAIT_MS, runnable }: Setup = {},
): Promise<HttpServer> {
  checkOptions('createServer', { schema: serverOptions, options }, (text) => new InputError(text));
  const { config, env = process.env, client: given, localName = 'local', log = logLine } = options;
  const serve = options.serve ?? config?.serve ?? {};
  const isVerified = hasKeys(serve, env);
  const authenticate = authenticator(serve, {
    env,
    local: localName,
    storedTenant: (name) => hashedId(place.client, 'tenant', name),
  });
  const { serve: _, localName: _name, client: _client, log: _log, ...settings } = options;
  const api = given ? partsOfClient(given).plain() : await openClient(settings);
  const place: Place = {
    ...partsOfClient(api),
    api,
    agents: withCalled(config?.agents ?? []),
    // A client of another machine has no use for the paths of this one.
    runnable: (!isVerified && runnable) || ((text) => withProgram(text)),
  };
  const limits = limitsInForce(serve);
  const logFailure = (what: string, error: unknown): void =>
    log(`${what}: ${redactMessage(stacksOf(error))}`);
  const streams = streamCounter(limits);
  const parts: DoorParts = { place, limits, waitMs, streams, isVerified, logFailure };
  const app = new Hono<Guarded>();
  app.onError((error, { req }) => {
    const found = errorAnswer(error, place.runnable);
    const { status, body, headers } = inFormOf(req.path, found);
    // A client that has disconnected is not a failure of the server.
    if (found.isHidden && !req.raw.signal.aborted)
      logFailure(`${req.method} ${pathForLog(place, req.path)}`, error);
    return answerJson(body, status, headers);
  });
  app.notFound(({ req }) => {
    const { status, body, headers } = inFormOf(
      req.path,
      errorAnswer(noRoute(app.routes, req), place.runnable),
    );
    return answerJson(body, status, headers);
  });
  app.use(async (context, next) => {
    await next();
    for (const [name, value] of Object.entries(SECURITY)) {
      if (!context.res.headers.has(name)) context.res.headers.set(name, value);
    }
  });
  app.use(checkSite(serve, { isOpen: !isVerified }));
  app.get('/healthz', async () => {
    const isUp = await answers(place);
    return answerJson({ ok: isUp }, isUp ? 200 : 503);
  });
  addConsole(app);
  app.get('/v1/openapi.json', () => answerJson(openApiDocument()));
  const checks = [checkPrincipal(authenticate, limits, clock), checkBody(limits)] as const;
  app.use('/v1/*', ...checks);
  app.use(MCP_PATH, ...checks);
  addApiRoutes(app, parts);
  addOpenAiRoutes(app, parts);
  addUiRoutes(app, parts);
  addAgUiRoutes(app, parts);
  addMcpRoute(app, parts, { canDecide: serve.mcp?.decide === true });
  const close = given === undefined ? () => api.disconnect() : () => Promise.resolve();
  return {
    fetch: async (request) => await app.fetch(request),
    isVerified,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Returns a path with the hash of the id in it, if ids are hashed: a log may be kept elsewhere. */
function pathForLog({ client }: Place, path: string): string {
  const hashed = (id: string): string => hashedId(client, 'run', id);
  return path.replace(
    /^(\/v1\/(?:runs|ui\/[^/]+|responses)\/)([^/]+)/,
    (_, start: string, text: string) => {
      const id = percentDecoded(text);
      const response = start === '/v1/responses/' ? readResponseId(id) : null;
      if (response === null) return start + hashed(id);
      return start + responseId({ ...response, run: hashed(response.run) });
    },
  );
}

/** Headers of all answers: a browser reads JSON as JSON, and no page of another site embeds an answer. */
const SECURITY = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

/** How many causes of an error the log has. */
const MAX_CAUSES = 4;

/** Returns the stacks of an error and of its causes. */
function stacksOf(error: unknown, causes = MAX_CAUSES): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.stack || String(error);
  const { cause } = error;
  if (cause === undefined || causes === 0) return own;
  return `${own}\ncaused by: ${stacksOf(cause, causes - 1)}`;
}

function logLine(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** The time in which Temporal must answer a check of its health. */
const HEALTH_MS = 2_000;

async function answers({ client }: Place): Promise<boolean> {
  try {
    const { connection, options } = client;
    const { namespace } = options;
    await connection.withDeadline(Date.now() + HEALTH_MS, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
    return true;
  } catch {
    return false;
  }
}

/** The folder of the page; it is beside `src` and beside `dist`. */
const FOLDER = fileURLToPath(new URL('../../console/', import.meta.url));

/** The files of the page, by their path. No other file of the folder is served. */
const FILES: Readonly<Record<string, readonly [file: string, type: string]>> = {
  '/': ['index.html', 'text/html'],
  '/console/style.css': ['style.css', 'text/css'],
  '/console/icon.svg': ['icon.svg', 'image/svg+xml'],
  '/console/vendor/htm-preact.js': ['vendor/htm-preact.js', 'text/javascript'],
  ...Object.fromEntries(
    ['app', 'api', 'parts', 'form', 'request', 'events', 'run', 'graph', 'agents'].map((name) => [
      `/console/${name}.js`,
      [`${name}.js`, 'text/javascript'],
    ]),
  ),
};

/** The page loads nothing from elsewhere, runs no inline script, and cannot be framed. */
const POLICY =
  "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/** Adds the console, a page for people. It has no data; it asks the API with the key of its user. */
function addConsole(app: Hono<Guarded>): void {
  for (const [path, [file, type]] of Object.entries(FILES)) {
    app.get(path, async () => {
      const body = await readFile(FOLDER + file, 'utf8');
      return new Response(body, {
        headers: {
          'content-type': `${type}; charset=utf-8`,
          'content-security-policy': POLICY,
          'cache-control': 'no-cache',
        },
      });
    });
  }
}

type Part = Readonly<Record<string, unknown>>;

/** Returns the OpenAPI 3.1 document of the HTTP API. */
function openApiDocument(): Part {
  const schemas: Record<string, unknown> = {};
  const schemaOf: SchemaOf = (type, io) => {
    const json = JSON.stringify(z.toJSONSchema(type, { io, unrepresentable: 'any' }));
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- zod has just written it
    const written = parseJson(json.replaceAll('"#/$defs/', '"#/components/schemas/')) as JsonSchema;
    const { $defs, $schema: _, ...schema } = written;
    Object.assign(schemas, $defs);
    return schema;
  };
  const error = jsonContent(schemaOf(errorBody, 'output'));
  const failures = { default: { description: 'the request was refused, or failed', ...error } };
  const paths: Record<string, Record<string, Part>> = {};
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    const entry = describeOperation(name, operation, schemaOf);
    const responses = { ...entry.responses, ...failures };
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method]: { ...entry, responses },
    };
  }
  paths['/v1/runs/{run}/events'] = {
    get: { ...EVENTS, responses: { ...EVENTS.responses, ...failures } },
  };
  return {
    openapi: '3.1.0',
    info: { title: 'perdure', version: ownVersion(), description: 'Durable AI agents over HTTP.' },
    components: { securitySchemes: { key: { type: 'http', scheme: 'bearer' } }, schemas },
    security: [{ key: [] }],
    paths,
  };
}

interface JsonSchema extends Part {
  readonly properties?: Readonly<Record<string, Part>>;
  readonly required?: readonly string[];
}

type SchemaOf = (type: z.ZodType, io: 'input' | 'output') => JsonSchema;

function jsonContent(schema: Part): Part {
  return { content: { 'application/json': { schema } } };
}

function describeOperation(
  operationId: string,
  { method, path, summary, status, input, output }: Operation,
  schemaOf: SchemaOf,
) {
  const { properties = {}, required = [], ...rest } = schemaOf(input, 'input');
  const inPath = pathFields(path);
  const parameters = Object.entries(properties)
    .filter(([name]) => inPath.includes(name) || method === 'get')
    .map(([name, schema]) => ({
      name,
      in: inPath.includes(name) ? 'path' : 'query',
      required: required.includes(name),
      schema,
    }));
  const inBody = Object.entries(properties).filter(([name]) => !inPath.includes(name));
  const body = {
    ...rest,
    properties: Object.fromEntries(inBody),
    required: required.filter((name) => !inPath.includes(name)),
  };
  return {
    operationId,
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(method === 'post' && { requestBody: { required: true, ...jsonContent(body) } }),
    responses: {
      [status]: { description: summary, ...jsonContent(schemaOf(output, 'output')) },
    },
  };
}

const EVENTS = {
  operationId: 'streamEvents',
  summary:
    'Streams the events of a run: its history, and replies while they are written. Each event has an id; send the last one as Last-Event-ID to continue there.',
  parameters: [
    { name: 'run', in: 'path', required: true, schema: { type: 'string' } },
    {
      name: 'after',
      in: 'query',
      required: false,
      schema: { type: 'string' },
      description: 'the id of the last known event, or `now`',
    },
    { name: 'Last-Event-ID', in: 'header', required: false, schema: { type: 'string' } },
  ],
  responses: {
    200: {
      description: 'the events',
      content: { 'text/event-stream': { schema: { type: 'string' } } },
    },
    204: { description: 'the run has ended, and there is no event after this position' },
  },
};
