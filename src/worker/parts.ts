import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { Context } from '@temporalio/activity';
import type { Worker, WorkerOptions as SdkWorkerOptions } from '@temporalio/worker';
import type { Activities } from '../core/contract.js';
import { createActivities } from '../activities/create-activities.js';
import { createDefinitionCache } from '../activities/definitions.js';
import { createTranscriptCache } from '../activities/model/transcript-cache.js';
import { createAgentCatalog } from '../agents/catalog.js';
import type { Archive } from '../storage/archive.js';
import { fileArchive } from '../storage/file-archive.js';
import { fileBlobStore } from '../storage/file-blob-store.js';
import type { BlobStore } from '../storage/blob-store.js';
import { workerStore } from '../storage/worker-store.js';
import { type Config } from '../config.js';
import { homeOf } from '../storage/home.js';
import type { SegmentSize } from '../core/state.js';
import type { LiveHub } from '../live/hub.js';
import { createSessions } from '../mcp/sessions.js';
import { createModelCatalog } from '../models/model-catalog.js';
import { secretNamesOf } from './secret-names.js';
import { assertSecretNames } from '../secrets/names.js';
import { learnSecrets } from '../secrets/known.js';
import { createAttributeLookup } from '../temporal/search-attributes.js';
import { readResultTool } from '../tools/built-in/read-result.js';

/** What a worker knows and keeps, whoever makes it. */
export interface SharedWorkerOptions {
  /** Where large texts are kept; all workers of a queue must share it. Default PERDURE_HOME/blobs. */
  readonly blobs?: BlobStore;
  /** Where the full text of open runs is kept; shared like `blobs`. Default PERDURE_HOME/archive. */
  readonly archive?: Archive;
  /** Where keys, models and PERDURE_HOME are read from; default: the process's own. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** When a run goes on in a new segment of history; default after 100 steps or 2 MiB. */
  readonly segment?: SegmentSize;
  /**
   * How long a model call or a retrieval may go without a heartbeat, in ms: how soon the server gives
   * the work of a dead worker to another one. Pinned by each run at its start. From 1,000; default
   * 10,000. A tool has its own (`heartbeat`).
   */
  readonly heartbeatMs?: number;
  /** As `secrets` of the config; both lists count. */
  readonly secrets?: readonly string[];
  /** Memory for prompts; default 64 MB. What falls out is asked of the workflow again. */
  readonly transcriptCacheBytes?: number;
}

/** The parts that every worker of agents consists of. */
export interface WorkerParts {
  readonly activities: Activities;
  /** Lets the activities know that this worker begins to shut down. */
  readonly stop: () => void;
  /** Ends what was opened for the activities, when none runs any more. Never rejects. */
  readonly close: () => Promise<void>;
}

const DEFAULT_CACHE_BYTES = 64 * 1024 * 1024;

/** Makes the activities of one worker, with what they keep between calls. Throws for a model that cannot work. */
export function workerParts(
  config: Pick<Config, 'agents' | 'models' | 'secrets'>,
  { env = process.env, ...options }: SharedWorkerOptions & { readonly hub?: LiveHub },
): WorkerParts {
  const { agents: definitions, models = {} } = config;
  assertSecretNames(options.secrets, 'worker');
  // Before anything is made that could be told to anybody.
  learnSecrets({ env, names: [...secretNamesOf(config), ...(options.secrets ?? [])] });
  const stopping = new AbortController();
  // As many listen as there are prompts being rebuilt at once.
  setMaxListeners(0, stopping.signal);
  const blobs =
    options.blobs === undefined
      ? workerStore(fileBlobStore(join(homeOf(env), 'blobs')), { verified: true })
      : workerStore(options.blobs);
  const agents = createAgentCatalog(definitions, {
    defaultModel: env['PERDURE_MODEL'] ?? '',
    builtIn: [readResultTool(blobs)],
  });
  const mcp = createSessions(env);
  const activities = createActivities({
    agents,
    blobs,
    archive: options.archive ?? fileArchive(join(homeOf(env), 'archive')),
    models: createModelCatalog(models, env),
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
    stopping: stopping.signal,
  });
  return { activities, stop: () => stopping.abort(), close: () => mcp.close() };
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

/** How workers of agents poll and end, unless told otherwise. */
export const WORKER_SETTINGS = {
  // The default pollers starve under many runs (measured: 138 against 250 steps/s).
  workflowTaskPollerBehavior: { type: 'autoscaling' },
  activityTaskPollerBehavior: { type: 'autoscaling' },
  // How long a workflow task waits for a worker that was killed; then any other takes it.
  stickyQueueScheduleToStartTimeout: 5_000,
  // A call in flight may have been paid for.
  shutdownGraceTime: 5_000,
} as const satisfies Partial<SdkWorkerOptions>;

/** Calls `stop` as soon as anybody tells the worker to shut down, a signal to the process included. */
export function whenShutDown(worker: Worker, stop: () => void): void {
  const shutdown = worker.shutdown.bind(worker);
  // The SDK has no event for it, and calls this very method itself.
  worker.shutdown = () => {
    stop();
    shutdown();
  };
}
