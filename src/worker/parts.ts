import { setMaxListeners } from 'node:events';
import { Context } from '@temporalio/activity';
import {
  DefaultLogger,
  type Logger,
  Runtime,
  type Worker,
  type WorkerOptions as SdkWorkerOptions,
} from '@temporalio/worker';
import { createDefinitionCache } from '../activities/activity-context.js';
import { createActivities } from '../activities/create-activities.js';
import { budgetedModels, unpricedText } from '../activities/model/budgeted-models.js';
import { pacedModels } from '../activities/model/paced-models.js';
import { createTranscriptCache } from '../activities/model/transcript-cache.js';
import { createAgentCatalog, withCalled } from '../agents/agent-definition.js';
import type { RequestOptions } from '../agents/agent-parts.js';
import type { Agent } from '../agents/agent.js';
import { assertRuleNames, rulesOn } from '../agents/options.js';
import { type Config, budgetsOf } from '../config.js';
import { InputError } from '../core/errors.js';
import type { SharedBudget } from '../core/rules/budget.js';
import type { Activities } from '../core/run/contract.js';
import { keyringFrom } from '../encryption/keyring.js';
import { sealedBlobs } from '../encryption/sealed-stores.js';
import { toMs } from '../core/text/text.js';
import type { LiveHub } from '../live/hub.js';
import type { McpServer } from '../mcp/mcp-server.js';
import { createSessions } from '../mcp/session.js';
import { noiseFault } from '../mcp/transport.js';
import { type ModelCatalog, createModelCatalog } from '../models/model-catalog.js';
import { findMissingTool } from '../models/wire/api.js';
import { learnSecrets } from '../secrets/known.js';
import { redactMessage } from '../secrets/redact.js';
import { workerStore } from '../storage/blob-store.js';
import { openStores } from '../storage/file-stores.js';
import { perdureHome } from '../storage/files.js';
import { createAttributeLookup } from '../temporal/grpc.js';
import { readResultTool } from '../tools/built-in/default-tools.js';
import { type SharedWorkerOptions, mergeRequestOptions, mergeRequestSettings } from './options.js';
import { startRetention } from './retention.js';
import { collectSecretNames } from './secret-names.js';

/** The parts of a worker that runs agents. */
export interface WorkerParts {
  readonly activities: Activities;
  /** Signals to the activities that the worker is starting to shut down. */
  readonly stop: () => void;
  /** Begins to erase ended runs by the retention of the agents, until `stop` or `close`. */
  readonly startRetention: (worker: Worker) => void;
  /** Closes what the activities have opened, after the last one has ended. Never rejects. */
  readonly close: () => Promise<void>;
}

interface PartsOptions extends SharedWorkerOptions {
  readonly hub?: LiveHub;
  /** False: calls do not wait for the shared rates of models, and count against no budget. */
  readonly rates?: boolean;
}

/** The standard variable that turns on message content in OpenTelemetry spans of model calls. */
const CAPTURE_CONTENT = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';
const DEFAULT_CACHE_BYTES = 64 * 1024 * 1024;

/**
 * Creates the activities of one worker, with their caches and sessions. Throws if a model's options
 * are invalid, or if an agent needs a capability that its model lacks.
 */
export function createWorkerParts(
  config: Pick<
    Config,
    'agents' | 'models' | 'secrets' | 'encryption' | 'budgets' | keyof RequestOptions
  >,
  { env = process.env, ...options }: PartsOptions,
): WorkerParts {
  const { agents: definitions, models = {} } = config;
  // This runs before anything is created that could log a secret.
  const requests = mergeRequestOptions(config, options);
  const isAlone = options.rates === false;
  checkRules(withCalled(definitions), { config: config.rules, worker: options.rules }, isAlone);
  const named = collectSecretNames({ ...config, ...requests });
  learnSecrets({ env, names: [...named, ...(options.secrets ?? [])] });
  const stopping = new AbortController();
  // Each prompt that is being rebuilt adds a listener.
  setMaxListeners(0, stopping.signal);
  const stores = openStores(perdureHome(env), env);
  const stored =
    options.blobs === undefined
      ? workerStore(stores.blobs, { verified: true })
      : workerStore(options.blobs);
  const keyring = keyringFrom(config.encryption, env);
  const blobs = sealedBlobs(stored, keyring);
  const archive = options.archive ?? stores.archive;
  const agents = createAgentCatalog(definitions, {
    defaultModel: env['PERDURE_MODEL'] ?? '',
    builtIn: [readResultTool(blobs)],
  });
  const known = createModelCatalog(models, env);
  const budgets = isAlone ? [] : budgetsOf(config, keyring?.ids);
  const budgeted = budgetedModels(isAlone ? known : pacedModels(known, models), budgets);
  const modelCatalog = budgeted.catalog;
  assertPrices(withCalled(definitions), modelCatalog, { budgets, env });
  assertNativeTools(definitions, modelCatalog, env['PERDURE_MODEL'] ?? '');
  const mcp = createSessions(env, warnOfNoise);
  const activities = createActivities({
    agents,
    blobs,
    archive,
    toolLock: options.toolLock ?? stores.toolLock,
    models: modelCatalog,
    transcripts: createTranscriptCache({
      maxBytes: options.transcriptCacheBytes ?? DEFAULT_CACHE_BYTES,
    }),
    definitions: createDefinitionCache(agents),
    ...(options.hub && { live: options.hub }),
    mcp,
    ...(options.segment && { segment: options.segment }),
    ...(options.heartbeat !== undefined && { heartbeatMs: toMs(options.heartbeat) }),
    searchAttributes: createAttributeLookup(() => {
      const { client, info } = Context.current();
      return { connection: client.connection, namespace: info.namespace };
    }),
    requests: mergeRequestSettings(requests, env),
    captureContent: env[CAPTURE_CONTENT]?.trim().toLowerCase() === 'true',
    stopping: stopping.signal,
  });
  const stop = (): void => stopping.abort();
  const close = async (): Promise<void> => {
    stop();
    await Promise.all([budgeted.close(), mcp.close()]);
  };
  return {
    activities,
    stop,
    startRetention: (worker) => {
      const { taskQueue, workerDeploymentOptions: deployed } = worker.options;
      const build = deployed?.useWorkerVersioning === true ? deployed.version : null;
      const erasable = sealedBlobs(options.blobs ?? stores.blobs, keyring);
      const { signal } = stopping;
      const all = withCalled(definitions);
      const place = { archive, blobs: erasable, taskQueue, build };
      startRetention({ agents: all, ...place, signal }, () => worker.client);
    },
    close,
  };
}

/** Throws an `InputError` if the price of an agent's model is unknown and a budget is in money. */
function assertPrices(
  agents: readonly Pick<Agent, 'name' | 'model' | 'fallbacks'>[],
  models: ModelCatalog,
  {
    budgets,
    env,
  }: {
    readonly budgets: readonly SharedBudget[];
    readonly env: Readonly<Record<string, string | undefined>>;
  },
): void {
  if (budgets.every(({ unit }) => unit !== 'costUsd')) return;
  for (const { name, model, fallbacks = [] } of agents) {
    const called = [model ?? env['PERDURE_MODEL'] ?? '', ...fallbacks];
    const unpriced = called.find((one) => one !== '' && models.resolve(one).price === null);
    if (unpriced !== undefined) throw new InputError(`agent "${name}": ${unpricedText(unpriced)}`);
  }
}

/**
 * Throws an `InputError` if an agent has provider-executed tools, such as a web search, and one of
 * its models is known to lack them, since every turn with it would fail.
 */
function assertNativeTools(
  agents: readonly Pick<Agent, 'name' | 'model' | 'fallbacks' | 'settings'>[],
  models: ModelCatalog,
  defaultModel: string,
): void {
  for (const { name, model: own, fallbacks = [], settings } of agents) {
    for (const model of [own ?? defaultModel, ...fallbacks].filter((one) => one !== '')) {
      const tool = findMissingTool(settings, models.resolve(model).capabilities);
      if (tool === undefined) continue;
      throw new InputError(
        `agent "${name}": settings.nativeTools: model "${model}" does not have ${JSON.stringify(tool['type'])}; ` +
          "name a model that has it, at an entry in `models` of the config with api: 'responses'",
      );
    }
  }
}

function warnOfNoise({ name }: McpServer, text: string): void {
  const { what, fix } = noiseFault(text);
  Runtime.instance().logger.warn(redactMessage(`MCP server "${name}": ${what}; ${fix}`));
}

/**
 * Throws an `InputError` for rules that can apply to no call. Logs which of them apply to none yet,
 * and which cannot be checked yet.
 */
function checkRules(
  agents: readonly Agent[],
  given: Readonly<Record<'config' | 'worker', RequestOptions['rules']>>,
  isAlone: boolean,
): void {
  // Temporal's runtime would keep a process without a worker alive, and take its first SIGTERM.
  const logger = (): Logger => (isAlone ? new DefaultLogger('WARN') : Runtime.instance().logger);
  const own = agents.map((agent) => [`agent "${agent.name}"`, [agent], agent.rules] as const);
  const shared = Object.entries(given).map(([owner, rules]) => [owner, agents, rules] as const);
  for (const [owner, on, rules] of [...shared, ...own]) {
    assertRuleNames(rules, on, owner);
    const { warnings, unchecked } = rulesOn(on, rules);
    for (const text of warnings) logger().warn(redactMessage(`${owner}: ${text}`));
    // It is the case at each start with an MCP server, and nothing is wrong.
    for (const text of unchecked) {
      logger().info(redactMessage(`${owner}: ${text}; perdure doctor checks it`));
    }
  }
}

/** The defaults for how a worker polls and shuts down. */
export const WORKER_SETTINGS = {
  // The default pollers starve under many runs (measured: 138 versus 250 steps/s).
  workflowTaskPollerBehavior: { type: 'autoscaling' },
  activityTaskPollerBehavior: { type: 'autoscaling' },
  // After this time, another worker takes the workflow task of a worker that was killed.
  stickyQueueScheduleToStartTimeout: 5_000,
  // A model call in flight may already be paid for.
  shutdownGraceTime: 5_000,
} as const satisfies Partial<SdkWorkerOptions>;

/** Calls `stop` as soon as the worker starts to shut down, even if a process signal causes it. */
export function onShutdown(worker: Worker, stop: () => void): void {
  const shutdown = worker.shutdown.bind(worker);
  // The SDK has no event for this, and its signal handler calls this method.
  worker.shutdown = () => {
    stop();
    shutdown();
  };
}
