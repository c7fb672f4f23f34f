import type { Agent } from '../agents/agent.js';
import { needsModel, withCalled } from '../agents/agent-definition.js';
import type { RequestOptions } from '../agents/agent-parts.js';
import { assertAgent } from '../agents/given-agent.js';
import type { StartOptions } from '../client/client-types.js';
import { openClient } from '../client/create-client.js';
import { InputError } from '../core/errors.js';
import type { RunInput } from '../core/input/input.js';
import type { Activities } from '../core/run/contract.js';
import type { SegmentSize } from '../core/state/state.js';
import { isObject } from '../core/text/json.js';
import { type Duration, formatCount, show, toMs } from '../core/text/text.js';
import type { Model } from '../models/model.js';
import { FREE, createModelCatalog } from '../models/model-catalog.js';
import type { ModelEntry } from '../models/model-entry.js';
import type { Archive, BlobStore } from '../storage/blob-store.js';
import { archiveIn, blobsIn, toolLockIn } from '../storage/tool-lock.js';
import type { Action } from '../testing/actions.js';
import { type ScriptStep, scriptedModel } from '../testing/script.js';
import { startRun } from '../updates/start.js';
import { noteNames } from './note-names.js';
import { assertOptionNames } from '../validation/option-names.js';
import { createWorkerParts } from '../worker/parts.js';
import { type MemoryWorker, memoryObjects, openHost } from './host.js';
import type { Fault } from './faults.js';
import { type Observed, type Watch, observeAgents, observeMcp, observeModel } from './observe.js';
import {
  type Reactions,
  type Script,
  type Stage,
  afterCall,
  afterStep,
  beforeCall,
  beforeStep,
  createScript,
  setTimes,
} from './script.js';
import {
  type MemoryRun,
  type PartialRun,
  resultOf,
  assertScript,
  missedIn,
  DeadlockError,
  play,
} from './memory-run.js';

/** A model of a run in memory: a list of replies, or a model that the worker calls. */
export type MemoryModel = readonly ScriptStep[] | Model;

/** Options of `runInMemory`: what the run starts with, and all that happens to it. */
export interface MemoryOptions<Input = unknown, Args = unknown>
  extends Omit<StartOptions<Input, Args>, 'reuseId'>, Omit<RequestOptions, 'rules'> {
  /**
   * The model of all agents: a list of replies, one for each call, or a model. Default: the models
   * that the agents name, with the keys of `env`.
   */
  readonly model?: MemoryModel;
  /** The models of agents that have different ones, by name. Default: none. */
  readonly models?: Readonly<Record<string, MemoryModel | ModelEntry>>;
  /**
   * Agents that the run may call beside those of its agent, as on the same worker. Default: none.
   */
  readonly agents?: readonly Agent[];
  /** What answers requests, and what happens at a certain call, step, or wait. Default: nothing. */
  readonly on?: Reactions;
  /** What happens at a certain time after the start, such as `'3 days'`. Default: nothing. */
  readonly at?: Readonly<Record<string, Action | readonly Action[]>>;
  /** Where the worker dies. Default: nowhere. */
  readonly faults?: readonly Fault[];
  /** When the run starts: Unix time in ms; default: now. */
  readonly startAt?: number;
  /** The longest virtual time of the run; default: a year. */
  readonly within?: Duration;
  /** When a run continues in a new segment of history; default: after 100 steps or 2 MiB. */
  readonly segment?: SegmentSize;
  /** The environment of the worker; default: that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The worker's blob store; default: one in memory. */
  readonly blobs?: BlobStore;
  /** The worker's archive; default: one in memory. */
  readonly archiveStore?: Archive;
}

/**
 * Runs an agent; see `runInMemory` of `perdure/testing`. Rejects with an `Error` if something was to
 * happen at a place that the run did not reach: the test would prove nothing.
 */
export async function runScript(agent: Agent, options: MemoryOptions): Promise<MemoryRun> {
  assertOptionNames<MemoryOptions>(options, OPTIONS);
  for (const one of [agent, ...(options.agents ?? [])]) assertAgent(one);
  if (options.model !== undefined) assertMemoryModel('model', options.model);
  const script = createScript(options);
  const run = await playRun(agent, options, script);
  if (run.outcome.status === 'failed' && run.modelRequests.length === 0)
    assertModel(agent, options);
  const { agents = [], clientTools = [] } = options;
  const asked = run.modelRequests.flatMap(({ tools }) => tools);
  noteNames(run, [agent, ...agents], [...clientTools, ...asked]);
  const missed = missedIn(script);
  if (missed.length === 0) return run;
  const { status, reason, error } = run.outcome;
  const end = `${status} (${reason}${error === undefined ? '' : `: ${error}`})`;
  throw new Error(
    `the run has not reached a place of its script: ${missed.join('; ')}; it ended as ${end} after ` +
      `${formatCount(run.effects.length, 'executed call')} and ${formatCount(run.modelRequests.length, 'model call')}`,
  );
}

/** Throws an `InputError` for what is neither a list of replies nor a model. */
function assertMemoryModel(where: string, model: unknown): void {
  if (!Array.isArray(model)) {
    if (isObject(model) && typeof model['call'] === 'function') return;
    throw new InputError(
      `${where}: expected a list of replies or a model, got ${show(model)}; write for example [replyText('Done.')]`,
    );
  }
  const at = model.findIndex((step) => !isObject(step) && typeof step !== 'function');
  if (at === -1) return;
  throw new InputError(
    `${where}[${at}]: expected a reply, got ${show(model[at])}; make it with replyText('…'), replyCall('TOOL', {…}), or replyError(…)`,
  );
}

/** Throws an `InputError` if the agent has no model at all: a test of such a run would prove nothing. */
function assertModel(agent: Agent, { model, env = process.env }: MemoryOptions): void {
  const has = model !== undefined || Boolean(agent.model ?? env['PERDURE_MODEL']);
  if (has || !needsModel(agent)) return;
  throw new InputError(
    `model: expected replies or a model, since agent ${show(agent.name)} names none, got none; give for example \`model: [replyText("Hello.")]\``,
  );
}

const YEAR = '365 days';
const TASK_QUEUE = 'memory';

/** Runs an agent, whether or not it reaches all places of its script. */
export async function playRun(
  agent: Agent,
  options: MemoryOptions,
  script: Script = createScript(options),
): Promise<MemoryRun> {
  const { run, error } = await playPartly(agent, options, { script });
  if (error !== null || run.outcome === null) throw error?.cause ?? new Error('no outcome');
  return { ...run, outcome: run.outcome };
}

/** Why a run cannot go on. `isStuck`: it waits for something that does not come. */
interface PlayError {
  readonly cause: unknown;
  readonly isStuck: boolean;
}

/** What replaces parts of a run in memory. */
interface Play {
  readonly script?: Script;
  /** The whole input of the run, in place of the options that it starts with. */
  readonly input?: RunInput;
  /** Activities in place of those of the worker. */
  readonly activities?: Partial<Pick<Activities, 'forkMessages'>>;
}

/**
 * Runs an agent until it ends, or cannot go on: `error` then has the cause. Rejects if it did not
 * begin.
 */
export async function playPartly(
  agent: Agent,
  options: MemoryOptions,
  { script = createScript(options), input, activities }: Play = {},
): Promise<{ readonly run: PartialRun; readonly error: PlayError | null }> {
  const { at = {}, within = YEAR } = options;
  // The times of a server have fractions of a ms, and a run accepts only whole ones.
  const startAt = Math.floor(options.startAt ?? Date.now());
  if (!Number.isSafeInteger(startAt)) {
    throw new InputError(`startAt: expected a Unix time in ms, such as Date.now(), got ${startAt}`);
  }
  const withinMs = toMs(within);
  if (!(withinMs > 0)) {
    throw new InputError(`within: expected a duration such as "30 days", got ${show(within)}`);
  }
  assertScript(options);
  const observed: Observed = { modelRequests: [], effects: [] };
  const objects = memoryObjects();
  const stores = {
    blobs: options.blobs ?? blobsIn(objects),
    archive: options.archiveStore ?? archiveIn(objects),
    toolLock: toolLockIn(objects),
  };
  const given = { script, observed, stores, activities, stage: () => stage };
  const createWorker = workerOf(agent, options, given);
  const host = await openHost(startAt, createWorker);
  const { server, client: temporal, pace } = host;
  const client = await openClient({ client: temporal, taskQueue: TASK_QUEUE, ...stores, env: {} });
  const id = options.id ?? 'memory';
  const stage: Stage = {
    id,
    client,
    temporal,
    clock: server.clock,
    kill: host.kill,
    work(act) {
      pace.begin();
      act().catch(pace.fail).finally(pace.end);
    },
  };
  try {
    stage.work(async () => {
      if (input === undefined) await client.start(agent, { ...startOptions(options), id });
      else await startRun(temporal, input, { id, taskQueue: TASK_QUEUE });
    });
    setTimes(script, stage, at);
    const error = await play(host, { script, stage, until: startAt + withinMs }).then(
      () => null,
      (cause: unknown) => ({ cause, isStuck: cause instanceof DeadlockError }),
    );
    const { archive } = stores;
    const known = { client, id, script, observed, startAt, archive, isOver: error === null };
    const run = await resultOf(host, known).catch((failure: unknown) => {
      throw error?.cause ?? failure;
    });
    return { run, error };
  } finally {
    await host.close();
    await client.disconnect();
  }
}

/** The options beside those that the run itself starts with. */
const OWN_OPTIONS: Readonly<
  Record<Exclude<keyof MemoryOptions, (typeof START_OPTIONS)[number]>, true>
> = {
  id: true,
  agents: true,
  archiveStore: true,
  at: true,
  blobs: true,
  env: true,
  faults: true,
  mayDecide: true,
  model: true,
  models: true,
  notify: true,
  on: true,
  segment: true,
  startAt: true,
  within: true,
};

const START_OPTIONS = [
  'message',
  'messages',
  'input',
  'attachments',
  'artifacts',
  'open',
  'limits',
  'context',
  'args',
  'settings',
  'tags',
  'archive',
  'by',
  'rules',
  'tenant',
  'unattended',
  'modelAttempts',
  'clientTools',
  'prompt',
  'promptArgs',
] as const;

const OPTIONS = {
  ...OWN_OPTIONS,
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each of them has an entry
  ...(Object.fromEntries(START_OPTIONS.map((name) => [name, true])) as Record<
    (typeof START_OPTIONS)[number],
    true
  >),
};

/** Returns the options that the run itself starts with. */
function startOptions(options: MemoryOptions): StartOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([name]) => START_OPTIONS.some((known) => known === name)),
  );
}

/** Returns a function that creates the worker, and again after its death. */
function workerOf(
  agent: Agent,
  options: MemoryOptions,
  given: {
    readonly script: Script;
    readonly observed: Observed;
    readonly stores: Pick<MemoryStores, 'blobs' | 'archive' | 'toolLock'>;
    readonly activities: Play['activities'];
    readonly stage: () => Stage;
  },
): () => MemoryWorker {
  const { script, observed, stores, stage } = given;
  const { model, models = {}, env = process.env, segment, mayDecide, notify } = options;
  const watch: Watch = {
    beforeCall: async (begun) => await beforeCall(script, stage(), begun),
    afterCall: (call) => afterCall(script, stage(), call),
    beforeStep: async () => await beforeStep(script, stage()),
    afterStep: (number) => afterStep(script, stage(), number),
  };
  const agents = observeAgents([agent, ...(options.agents ?? [])], observed, watch);
  const all = withCalled(agents);
  const names = new Set(
    all.flatMap(({ model: name, fallbacks }) => [name ?? DEFAULT_MODEL, ...fallbacks]),
  );
  const servers = new Set(all.flatMap(({ mcp }) => mcp.map(({ name }) => name)));
  const known = createModelCatalog({}, {});
  /** `one`: a list of replies has the price of the model that it stands for. */
  const pricedAs = (name: string, one: MemoryModel | ModelEntry, entry: ModelEntry): ModelEntry =>
    isScript(one) ? { ...entry, price: known.resolve(name).price ?? FREE } : entry;
  const observe = (place: string, one: MemoryModel | ModelEntry): ModelEntry => {
    if (typeof one !== 'object')
      throw new InputError(`${place}: expected a list of replies or a model, got ${show(one)}`);
    if (!isScript(one)) return 'call' in one ? observeModel(one, observed, watch) : one;
    const scripted = scriptedModel(one);
    script.replies.push({ place, given: one.length, used: () => scripted.requests.length });
    return observeModel(scripted, observed, watch);
  };
  const common = model === undefined ? undefined : observe('model', model);
  const entries: Record<string, ModelEntry> = {};
  if (model !== undefined && common !== undefined) {
    for (const name of names) entries[name] = pricedAs(name, model, common);
  }
  for (const [name, one] of Object.entries(models)) {
    entries[name] = pricedAs(name, one, observe(`models.${name}`, one));
  }
  const scripted = common !== undefined && { ...NO_PROVIDERS, PERDURE_MODEL: DEFAULT_MODEL };
  const workerEnv = { ...env, ...scripted };
  return () => {
    const parts = createWorkerParts(
      { agents, models: entries },
      {
        ...stores,
        env: workerEnv,
        // A run in memory shares its provider with no other worker.
        rates: false,
        ...(segment && { segment }),
        ...(mayDecide && { mayDecide }),
        ...(notify && { notify }),
      },
    );
    const runTool = observeMcp(parts.activities.runTool, { servers, observed, watch });
    return { ...parts, activities: { ...parts.activities, runTool, ...given.activities } };
  };
}

/** The name of the model of agents that name none. */
const DEFAULT_MODEL = 'scripted';

/** A model that no script replaces has no key, so it cannot be called by mistake. */
const NO_PROVIDERS = {
  OPENAI_API_KEY: undefined,
  OPENAI_BASE_URL: undefined,
  ANTHROPIC_API_KEY: undefined,
  ANTHROPIC_BASE_URL: undefined,
};

interface MemoryStores {
  readonly blobs: BlobStore;
  readonly archive: Archive;
  readonly toolLock: ReturnType<typeof toolLockIn>;
}

function isScript(model: MemoryModel | ModelEntry): model is readonly ScriptStep[] {
  return Array.isArray(model);
}
