import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { NativeConnection, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import { createActivities } from './activities/create-activities.js';
import { createDefinitionCache } from './activities/definitions.js';
import { createTranscriptCache } from './activities/transcript-cache.js';
import { createAgentCatalog } from './agents/catalog.js';
import { fileBlobStore } from './blobs/file-blob-store.js';
import type { BlobStore } from './blobs/blob-store.js';
import { homeOf, taskQueueOf, type Config } from './config.js';
import { connectionTarget, type ConnectionSettings } from './connection.js';
import { createModelCatalog } from './models/catalog.js';
import { searchAttributesOf } from './search-attributes.js';
import { readResultTool } from './tools/read-result.js';
import { workflowCode } from './workflow-code.js';

export interface WorkerOptions extends ConnectionSettings {
  readonly config: Config;
  /** Default: the config's, else PERDURE_TASK_QUEUE, else `perdure`. */
  readonly taskQueue?: string;
  /** Where large texts are kept; all workers of a queue must share it. Default PERDURE_HOME/blobs. */
  readonly blobs?: BlobStore;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Runs workflow code; false: only activities, e.g. on a machine for heavy tools. Default true. */
  readonly workflows?: boolean;
  /** Workflow code made before; default: perdure's own, prebuilt. */
  readonly workflowBundle?: WorkflowBundleOption;
  /** Milliseconds that activities in flight get to end when the worker shuts down; default 5,000. */
  readonly shutdownGraceMs?: number;
  /** Memory for prompts; default 64 MB. What falls out is asked of the workflow again. */
  readonly transcriptCacheBytes?: number;
  /** Idle runs kept in memory; default by the size of the heap. */
  readonly maxCachedWorkflows?: number;
}

export interface RunningWorker {
  readonly taskQueue: string;
  readonly identity: string;
  /** Resolves when the worker has stopped; rejects when it died. */
  readonly stopped: Promise<void>;
  /** Stops polling, lets activities end within the grace, closes the connection. */
  shutdown(): Promise<void>;
}

const STICKY_MS = 5_000;
const DEFAULT_GRACE_MS = 5_000;
const DEFAULT_CACHE_BYTES = 64 * 1024 * 1024;

/** Starts a worker and resolves when it polls. Rejects when the server or the configuration is at fault. */
export async function createWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { config, env = process.env } = options;
  const target = connectionTarget(
    {
      address: options.address ?? config.address,
      namespace: options.namespace ?? config.namespace,
    },
    env,
  );
  const taskQueue = options.taskQueue ?? taskQueueOf(config, env);
  const connection = await NativeConnection.connect(target.options);
  const stopping = new AbortController();
  // As many listen as there are prompts being rebuilt at once.
  setMaxListeners(0, stopping.signal);
  const blobs = options.blobs ?? fileBlobStore(join(homeOf(env), 'blobs'));
  const agents = createAgentCatalog(config.agents, {
    defaultModel: env['PERDURE_MODEL'] ?? '',
    builtIn: [readResultTool(blobs)],
  });
  try {
    const worker = await Worker.create({
      connection,
      namespace: target.namespace,
      taskQueue,
      ...(options.workflows !== false && {
        workflowBundle: options.workflowBundle ?? (await workflowCode()),
      }),
      activities: createActivities({
        agents,
        blobs,
        models: createModelCatalog(config.models ?? {}, env),
        transcripts: createTranscriptCache({
          maxBytes: options.transcriptCacheBytes ?? DEFAULT_CACHE_BYTES,
        }),
        definitions: createDefinitionCache(agents),
        searchAttributes: searchAttributesOf(connection, target.namespace),
        stopping: stopping.signal,
      }),
      // The default pollers starve under many runs (measured: 138 against 250 steps/s).
      workflowTaskPollerBehavior: { type: 'autoscaling' },
      activityTaskPollerBehavior: { type: 'autoscaling' },
      // How long a workflow task waits for a worker that was killed; then any other takes it.
      stickyQueueScheduleToStartTimeout: STICKY_MS,
      shutdownGraceTime: options.shutdownGraceMs ?? DEFAULT_GRACE_MS,
      ...(options.maxCachedWorkflows !== undefined && {
        maxCachedWorkflows: options.maxCachedWorkflows,
      }),
    });
    const stopped = worker.run().finally(() => connection.close());
    stopped.catch(() => undefined);
    return {
      taskQueue,
      identity: worker.options.identity,
      stopped,
      async shutdown() {
        stopping.abort();
        if (worker.getState() === 'RUNNING') worker.shutdown();
        await stopped;
      },
    };
  } catch (error) {
    await connection.close();
    throw error;
  }
}
