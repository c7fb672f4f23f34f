import { setMaxListeners } from 'node:events';
import { Context } from '@temporalio/activity';
import type { Worker, WorkerOptions as SdkWorkerOptions } from '@temporalio/worker';
import type { Activities } from '../core/contract.js';
import { createActivities } from '../activities/create-activities.js';
import { createDefinitionCache } from '../activities/definitions.js';
import { createTranscriptCache } from '../activities/model/transcript-cache.js';
import { createAgentCatalog } from '../agents/catalog.js';
import type { RequestOptions } from '../agents/requests.js';
import type { Archive } from '../storage/archive.js';
import type { BlobStore } from '../storage/blob-store.js';
import { openStores } from '../storage/file-stores.js';
import { workerStore } from '../storage/worker-store.js';
import type { Config } from '../config.js';
import { perdureHome } from '../storage/home.js';
import type { SegmentSize } from '../core/state.js';
import type { LiveHub } from '../live/hub.js';
import { createSessions } from '../mcp/sessions.js';
import { createModelCatalog, type ModelCatalog } from '../models/model-catalog.js';
import { isObject } from '../core/json.js';
import type { Agent } from '../agents/agent.js';
import { mergeRequestOptions, openRequests } from './requests.js';
import { collectSecretNames } from './secret-names.js';
import { assertSecretNames } from '../secrets/names.js';
import { learnSecrets } from '../secrets/known.js';
import { createAttributeLookup } from '../temporal/search-attributes.js';
import { readResultTool } from '../tools/built-in/read-result.js';

/** Options of `createWorker` and of `perdurePlugin`. */
export interface SharedWorkerOptions extends RequestOptions {
  /** The store for large texts, shared by all workers of a task queue; default: files in PERDURE_HOME/blobs. */
  readonly blobs?: BlobStore;
  /** The store for the histories of open runs, shared like `blobs`; default: files in PERDURE_HOME/archive. */
  readonly archive?: Archive;
  /** The environment for keys, models, and PERDURE_HOME; default: that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** When a run continues in a new segment of history; default: after 100 steps or 2 MiB. */
  readonly segment?: SegmentSize;
  /**
   * Milliseconds that a model call or a retrieval may go without a heartbeat, at least 1,000; default
   * 10,000. After that, the server gives the work of a dead worker to another one. Each run pins the
   * value at its start. A tool has its own (`heartbeat`).
   */
  readonly heartbeatMs?: number;
  /** Further names of secret variables, like `secrets` of the configuration; both lists count. */
  readonly secrets?: readonly string[];
  /** Bytes of memory for prompts; default 64 MiB. A worker queries the workflow for what it has evicted. */
  readonly transcriptCacheBytes?: number;
}

/** The parts of a worker that runs agents. */
export interface WorkerParts {
  readonly activities: Activities;
  /** Signals the activities that the worker begins to shut down. */
  readonly stop: () => void;
  /** Closes what the activities have opened, after the last one has ended. Never rejects. */
  readonly close: () => Promise<void>;
}

/** The standard variable that turns on message content in OpenTelemetry spans of model calls. */
const CAPTURE_CONTENT = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';
const DEFAULT_CACHE_BYTES = 64 * 1024 * 1024;

/** Creates the activities of one worker, with their caches and sessions. Throws if options of a model are invalid, or if an agent needs what its model lacks. */
export function createWorkerParts(
  config: Pick<Config, 'agents' | 'models' | 'secrets' | keyof RequestOptions>,
  { env = process.env, ...options }: SharedWorkerOptions & { readonly hub?: LiveHub },
): WorkerParts {
  const { agents: definitions, models = {} } = config;
  assertSecretNames(options.secrets, 'worker');
  // Before anything is created that could put a secret into a log.
  const requests = mergeRequestOptions(config, options);
  const named = collectSecretNames({ ...config, ...requests });
  learnSecrets({ env, names: [...named, ...(options.secrets ?? [])] });
  const stopping = new AbortController();
  // Each prompt that is being rebuilt listens.
  setMaxListeners(0, stopping.signal);
  const stores = openStores(perdureHome(env), env);
  const blobs =
    options.blobs === undefined
      ? workerStore(stores.blobs, { verified: true })
      : workerStore(options.blobs);
  const agents = createAgentCatalog(definitions, {
    defaultModel: env['PERDURE_MODEL'] ?? '',
    builtIn: [readResultTool(blobs)],
  });
  const modelCatalog = createModelCatalog(models, env);
  assertNativeTools(definitions, modelCatalog, env['PERDURE_MODEL'] ?? '');
  const mcp = createSessions(env);
  const activities = createActivities({
    agents,
    blobs,
    archive: options.archive ?? stores.archive,
    models: modelCatalog,
    transcripts: createTranscriptCache({
      maxBytes: options.transcriptCacheBytes ?? DEFAULT_CACHE_BYTES,
    }),
    definitions: createDefinitionCache(agents),
    ...(options.hub && { live: options.hub }),
    mcp,
    ...(options.segment && { segment: checkedSegment(options.segment) }),
    ...(options.heartbeatMs !== undefined && {
      heartbeatMs: checkedHeartbeat(options.heartbeatMs),
    }),
    searchAttributes: createAttributeLookup(() => {
      const { client, info } = Context.current();
      return { connection: client.connection, namespace: info.namespace };
    }),
    requests: openRequests(requests, env),
    captureContent: env[CAPTURE_CONTENT]?.trim().toLowerCase() === 'true',
    stopping: stopping.signal,
  });
  return { activities, stop: () => stopping.abort(), close: () => mcp.close() };
}

/**
 * Throws an `Error` if an agent has tools for its provider to execute, such as a web search, and its model
 * is known to have none: each of its turns would fail.
 */
function assertNativeTools(
  agents: readonly Pick<Agent, 'name' | 'model' | 'settings'>[],
  models: ModelCatalog,
  defaultModel: string,
): void {
  for (const { name, model: own, settings } of agents) {
    const model = own ?? defaultModel;
    const { nativeTools } = settings;
    if (!Array.isArray(nativeTools) || model === '') continue;
    const { capabilities } = models.resolve(model);
    const tool = nativeTools
      .filter(isObject)
      .find((one) => !capabilities['handler' in one ? 'computerUse' : 'nativeTools']);
    if (tool === undefined) continue;
    throw new Error(
      `agent "${name}": settings.nativeTools: model "${model}" does not have ${JSON.stringify(tool['type'])}; ` +
        "name a model that has it, at an entry in `models` of the config with api: 'responses'",
    );
  }
}

function checkedSegment(segment: SegmentSize): SegmentSize {
  const { steps, bytes, events } = segment;
  const sizes = [steps, bytes, events ?? 1];
  if (sizes.every((size) => Number.isInteger(size) && size > 0)) {
    return { steps, bytes, ...(events !== undefined && { events }) };
  }
  throw new Error(
    `segment: expected {steps, bytes, events?}, whole numbers above 0; got ${JSON.stringify(segment)}`,
  );
}

function checkedHeartbeat(ms: number): number {
  if (Number.isInteger(ms) && ms >= 1_000) return ms;
  throw new Error(`heartbeatMs: expected a whole number from 1,000, got ${ms}`);
}

/** The defaults for how a worker polls and shuts down. */
export const WORKER_SETTINGS = {
  // The default pollers starve under many runs (measured: 138 against 250 steps/s).
  workflowTaskPollerBehavior: { type: 'autoscaling' },
  activityTaskPollerBehavior: { type: 'autoscaling' },
  // After this time, another worker takes the workflow task of a worker that was killed.
  stickyQueueScheduleToStartTimeout: 5_000,
  // A model call in flight may be paid for already.
  shutdownGraceTime: 5_000,
  // The SDK ends workflow code after 5 s, by the clock. If a worker was frozen in it for longer, that corrupts
  // the thread for all runs: it aborts the process, stops answering, or loses cancellations. The
  // SDK's type does not list this option.
  isolateExecutionTimeout: 3_600_000,
} as const satisfies Partial<SdkWorkerOptions> & { readonly isolateExecutionTimeout: number };

/** Calls `stop` as soon as the worker begins to shut down, also by a signal to the process. */
export function onShutdown(worker: Worker, stop: () => void): void {
  const shutdown = worker.shutdown.bind(worker);
  // The SDK has no event for this, and its signal handler calls this method.
  worker.shutdown = () => {
    stop();
    shutdown();
  };
}
