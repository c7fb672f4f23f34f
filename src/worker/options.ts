import type { RuntimeOptions, WorkerInterceptors, WorkflowBundleOption } from '@temporalio/worker';
import { z } from 'zod';
import type { RequestDependencies, Webhook } from '../activities/activity-context.js';
import type { MayDecide, NotifyTarget, RequestOptions } from '../agents/agent-parts.js';
import { assertRequestOptions, requestOptions } from '../agents/options.js';
import type { Config } from '../config.js';
import { InputError } from '../core/errors.js';
import type { SegmentSize } from '../core/state/state.js';
import { isObject } from '../core/text/json.js';
import type { Duration } from '../core/text/text.js';
import type { LiveOptions } from '../live/live-options.js';
import { secretNamesProblem } from '../secrets/known.js';
import type { Archive, BlobStore } from '../storage/blob-store.js';
import type { ToolLock } from '../storage/tool-lock.js';
import type { ConnectionSettings } from '../temporal/connection.js';
import {
  type OptionSchemas,
  checkOptions,
  expected,
  expectedHidden,
  timerDurationFrom,
} from '../validation/check-options.js';
import type { DeploymentOptions } from './deployment.js';

/** Options of `createWorker` and of `perdurePlugin`. */
export interface SharedWorkerOptions extends RequestOptions {
  /**
   * The store for large texts, shared by all workers of a task queue; default: files in
   * PERDURE_HOME/blobs.
   */
  readonly blobs?: BlobStore;
  /**
   * The store for the histories of open runs, shared like `blobs`; default: files in
   * PERDURE_HOME/archive.
   */
  readonly archive?: Archive;
  /**
   * The record of accepted forms of MCP tools, shared like `blobs`; default: files in
   * PERDURE_HOME/mcp-lock.
   */
  readonly toolLock?: ToolLock;
  /** The environment for keys, models, and PERDURE_HOME; default: that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** When a run continues in a new segment of history; default: after 100 steps or 2 MiB. */
  readonly segment?: SegmentSize;
  /**
   * How long a model call or a retrieval may go without a heartbeat. A duration of at least a second:
   * ms, or words such as '10 seconds', which is the default. After that, the server gives the work of
   * a dead worker to another one. Each run pins the value at its start. Tools have their own option
   * (`heartbeat`).
   */
  readonly heartbeat?: Duration;
  /**
   * More names of secret variables, like `secrets` of the configuration; both lists apply. Default:
   * none.
   */
  readonly secrets?: readonly string[];
  /**
   * Bytes of memory for prompts; default 64 MiB. A worker queries the workflow for evicted prompts.
   */
  readonly transcriptCacheBytes?: number;
}

/** Options of `createWorker`. */
export interface WorkerOptions extends ConnectionSettings, SharedWorkerOptions {
  readonly config: Config;
  /** The folder for blobs, archive, and live hosts; default: PERDURE_HOME. */
  readonly home?: string;
  /** Default: that of the configuration, else PERDURE_TASK_QUEUE, else `perdure`. */
  readonly taskQueue?: string;
  /**
   * Whether it runs workflow code; with false, only activities, for example on a machine for heavy
   * tools. Default true.
   */
  readonly workflows?: boolean;
  /**
   * Whether it executes activities; with false, runs accept messages and decisions, and their work
   * waits. Default true.
   */
  readonly activities?: boolean;
  /**
   * Interceptors for activities and for the client in activities, such as Temporal's for
   * OpenTelemetry. Workflow interceptors belong in your own bundle. Default: none.
   */
  readonly interceptors?: Pick<WorkerInterceptors, 'activity' | 'client'>;
  /**
   * Options of the SDK's runtime: its metrics (perdure's are among them), its logger, which gets no
   * secrets, and its telemetry. A process has one runtime; starting the worker rejects if there
   * already is one. Default: those of the SDK, with a logger of warnings, errors, what tools log, and the
   * beginning and the end of the worker; `logger: new DefaultLogger('INFO')` logs more.
   */
  readonly runtime?: RuntimeOptions;
  /** A bundle of workflow code; default: perdure's own. */
  readonly workflowBundle?: WorkflowBundleOption;
  /**
   * How long activities in flight may take to end when the worker shuts down. A duration: ms, or
   * words such as '5 seconds', which is the default.
   */
  readonly shutdownGrace?: Duration;
  /** How many idle runs stay in memory; default: based on the heap size. */
  readonly maxCachedWorkflows?: number;
  /** Worker versioning: runs stay on the build on which they started. Default: no versioning. */
  readonly deployment?: DeploymentOptions;
  /**
   * Serves replies in progress to `client.stream` and over HTTP. Default false; commands that host
   * a worker turn it on.
   */
  readonly live?: LiveOptions | false;
  /**
   * Whether an error that a tool raises outside its promise (in a floating promise, a timer, or an
   * event emitter) fails that tool's call and is logged, instead of ending the process and the
   * calls of other runs with it. The outcome of a `once` call is then unknown. This also covers
   * `retrieve`, `decide`, `verify`, models, and output functions. An error that belongs to none of
   * them still ends the process. Adds listeners for `unhandledRejection` and `uncaughtException`.
   * Default false; commands that host a worker turn it on.
   */
  readonly containStrayErrors?: boolean;
}

/** Options of `perdurePlugin`. */
export interface PluginOptions
  extends Pick<Config, 'agents' | 'models' | 'budgets' | 'encryption'>, SharedWorkerOptions {}

/** Returns the schema of an object that has these methods. */
function having(text: string, ...methods: readonly string[]): z.ZodType {
  return expected(
    text,
    (value) => isObject(value) && methods.every((name) => typeof value[name] === 'function'),
  );
}

const anyObject = z.looseObject({});
const positive = z.int().min(1);
const MIN_HEARTBEAT_MS = 1_000;

const sharedOptions = {
  ...requestOptions,
  blobs: having('a blob store with `put` and `get`', 'put', 'get').optional(),
  archive: having(
    'an archive with `write`, `list`, and `read`',
    'write',
    'list',
    'read',
  ).optional(),
  toolLock: having('a lock with `read`, `write`, and `form`', 'read', 'write', 'form').optional(),
  env: anyObject.optional(),
  segment: z
    .strictObject({
      steps: positive,
      bytes: positive,
      events: positive.optional(),
    } satisfies OptionSchemas<SegmentSize>)
    .optional(),
  heartbeat: timerDurationFrom(MIN_HEARTBEAT_MS, '1 second').optional(),
  secrets: z.unknown().optional(),
  transcriptCacheBytes: z.number().min(0).optional(),
} satisfies OptionSchemas<SharedWorkerOptions>;

const workerOptions = z.strictObject({
  ...sharedOptions,
  config: expectedHidden(
    'a configuration; make it with defineConfig({…})',
    (value) => isObject(value) && Array.isArray(value['agents']),
  ),
  address: z.string().optional(),
  namespace: z.string().optional(),
  home: z.string().optional(),
  taskQueue: z.string().optional(),
  workflows: z.boolean().optional(),
  activities: z.boolean().optional(),
  interceptors: anyObject.optional(),
  runtime: anyObject.optional(),
  workflowBundle: anyObject.optional(),
  shutdownGrace: timerDurationFrom(0).optional(),
  maxCachedWorkflows: z.int().min(0).optional(),
  deployment: z
    .strictObject({
      name: z.string(),
      buildId: z.string().optional(),
      promote: z.boolean().optional(),
    } satisfies OptionSchemas<DeploymentOptions>)
    .optional(),
  // `resolveLiveOptions` checks the values.
  live: z
    .preprocess(
      (given) => (given === false ? {} : given),
      z.strictObject({
        port: z.unknown().optional(),
        host: z.unknown().optional(),
        token: z.unknown().optional(),
        limits: z.unknown().optional(),
      } satisfies OptionSchemas<LiveOptions>),
    )
    .optional(),
  containStrayErrors: z.boolean().optional(),
} satisfies OptionSchemas<WorkerOptions>);

const pluginOptions = z.strictObject({
  ...sharedOptions,
  // `defineConfig` checks these.
  agents: z.unknown(),
  budgets: z.unknown().optional(),
  encryption: z.unknown().optional(),
  models: z.unknown().optional(),
} satisfies OptionSchemas<PluginOptions>);

/** Throws an `InputError` with a line for each fault of the options of `createWorker`. */
export function assertWorkerOptions(options: WorkerOptions): void {
  check('createWorker', workerOptions, options);
}

/** What a configuration may have, and a plugin may not: the SDK gets it from the program itself. */
const OWN_WORKER = {
  taskQueue: 'belongs to your own worker; pass it to Worker.create',
  namespace: 'belongs to your own worker; pass it to Worker.create',
  address: 'belongs to your own connection; pass it to NativeConnection.connect',
} as const;

/** Throws an `InputError` with a line for each fault of the options of `perdurePlugin`. */
export function assertPluginOptions(options: PluginOptions): void {
  const lines = Object.entries(OWN_WORKER)
    .filter(([name]) => isObject(options) && options[name] !== undefined)
    .map(([name, why]) => `perdurePlugin: ${name} ${why}, and omit it here`);
  if (lines.length > 0) throw new InputError(lines.join('\n'));
  check('perdurePlugin', pluginOptions, options);
}

function check(subject: string, schema: z.ZodType, options: SharedWorkerOptions): void {
  checkOptions(subject, { schema, options });
  const problem = secretNamesProblem(options.secrets, subject);
  if (problem !== null) throw new InputError(problem);
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Standard Webhooks requires keys of this length. */
const KEY_BYTES = { least: 24, most: 64 };

/**
 * Returns the options of a configuration together with those of one worker. The rules of both
 * apply, both functions must allow a decision, and the worker's `notify` replaces that of the
 * configuration. Throws an `InputError` if an option of the worker is invalid.
 */
export function mergeRequestOptions(
  config: RequestOptions,
  { rules, mayDecide, notify }: RequestOptions,
): RequestOptions {
  assertRequestOptions(
    { rules: config.rules, mayDecide: config.mayDecide, notify: config.notify },
    'config',
  );
  assertRequestOptions({ rules, mayDecide, notify }, 'worker');
  const both = [config.mayDecide, mayDecide].filter((each) => each !== undefined);
  const target = notify ?? config.notify;
  return {
    rules: [...(config.rules ?? []), ...(rules ?? [])],
    ...(both.length > 0 && { mayDecide: all(both) }),
    ...(target && { notify: target }),
  };
}

/**
 * Returns what the activities need. Throws an `InputError` if the key of a webhook is missing or
 * malformed.
 */
export function mergeRequestSettings(
  { rules = [], mayDecide, notify }: RequestOptions,
  env: Environment,
): RequestDependencies {
  return {
    rules,
    ...(mayDecide && { mayDecide }),
    ...(notify && { notify: typeof notify === 'function' ? notify : openWebhook(notify, env) }),
  };
}

function all(functions: readonly MayDecide[]): MayDecide {
  return async (request, decider) => {
    for (const mayDecide of functions) {
      const answer: unknown = await mayDecide(request, decider);
      if (answer !== true) return false;
    }
    return true;
  };
}

function openWebhook({ url, secretEnv }: NotifyTarget, env: Environment): Webhook {
  const secret = env[secretEnv] ?? '';
  const fix = `set it to whsec_ and the base64 of ${KEY_BYTES.least} to ${KEY_BYTES.most} random bytes`;
  if (secret === '') {
    throw new InputError(
      `notify.secretEnv: expected the environment variable ${secretEnv}, got none; ${fix}`,
    );
  }
  const [, base64 = ''] = /^whsec_([A-Za-z\d+/]+={0,2})$/.exec(secret) ?? [];
  const key = Buffer.from(base64, 'base64');
  // The value is a secret, so no message contains it.
  if (key.length < KEY_BYTES.least || key.length > KEY_BYTES.most) {
    throw new InputError(
      `notify.secretEnv: expected a key of Standard Webhooks in ${secretEnv}, got something else; ${fix}`,
    );
  }
  return { url, key };
}
