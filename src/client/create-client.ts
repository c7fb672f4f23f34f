import { deprecate } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { actorOf, withoutDoor } from '../core/input/turn-context.js';
import { isObject } from '../core/text/json.js';
import { type Keyring, keyringFrom } from '../encryption/keyring.js';
import { assertEncrypts, dataConverter } from '../encryption/payload-codec.js';
import { sealedBlobs } from '../encryption/sealed-stores.js';
import { liveWorkers, readLiveHosts } from '../live/live-workers.js';
import { type RunStreams, createRunStreams } from '../live/run-streams.js';
import { locateTarget } from '../server/locate-target.js';
import type { Archive, BlobStore } from '../storage/blob-store.js';
import { openStores } from '../storage/file-stores.js';
import { perdureHome } from '../storage/files.js';
import { clientSpans } from '../telemetry/spans.js';
import { namedAddress } from '../temporal/connection.js';
import { CHANNEL_OPTIONS, unreachable } from '../temporal/grpc.js';
import { setIdHashing } from '../temporal/stored-ids.js';
import { assertOneSdk } from '../temporal/sdk.js';
import { resolveTaskQueue } from '../temporal/task-queue.js';
import { type SentMessage, askOrStart, askRun, withId } from '../updates/ask.js';
import { claim } from '../updates/decide.js';
import type { ActorClaim } from '../workflows/messages/definitions.js';
import { type AgentLike, agentName, createRunInput, startRun } from '../updates/start.js';
import { type OptionSchemas, checkOptions, expectedHidden } from '../validation/check-options.js';
import { assertOptionNames } from '../validation/option-names.js';
import {
  type ArtifactsField,
  type MessageInput,
  attach,
  claimAttachments,
  storeArtifacts,
  answersOf,
} from './attach.js';
import { type BatchOptions, type BatchTask, createBatch } from './batch.js';
import {
  type ClientOptions,
  type PerdureClient,
  type SendOptions,
  type StartOptions,
  withActor,
} from './client-types.js';
import type { CancelOptions, RunLike } from './control.js';
import { controlMethods, decisionMethods } from './decision-methods.js';
import { withExplainedErrors } from './explain-errors.js';
import { assertForkOptions, assertKnownAgent, assertStart, forkRun } from './fork-run.js';
import { readMethods } from './read-methods.js';
import type { ClientOrigin } from './no-worker.js';
import { idOf, messageFields } from './given.js';
import { nameRun, storedId } from './run-ids.js';
import type { Runnable } from './runnable-texts.js';
import { createSchedules } from './schedule/schedule.js';
import { type ResultOptions, waitForResult } from './status.js';

/** Sends a message to a run, and starts the run if the options say so. */
async function sendMessage(
  client: Client,
  to: {
    readonly run: RunLike<unknown>;
    readonly message: string | MessageInput;
    readonly taskQueue: string;
    readonly blobs: BlobStore;
    /** No message of the client decides. */
    readonly isMute: boolean;
  },
  { start, by, door, ...updateOptions }: SendOptions & ActorClaim,
): Promise<SentMessage> {
  const name =
    start === undefined
      ? { id: await storedId(client, to.run) }
      : await nameRun(client, { id: idOf(to.run), agent: agentName(start.agent) });
  const { id } = name;
  const given: MessageInput = messageFields(to.message);
  const { artifacts, ...fields } = given;
  const stored = await storeArtifacts(to.blobs, id, { artifacts });
  const named = withId({
    ...claim(by, door),
    ...withoutDoor(fields),
    ...stored,
    ...answersOf(fields, to.isMute),
  });
  const message = { ...named, ...(await claimAttachments(to.blobs, id, named)) };
  if (start === undefined) return await askRun(client, id, message, updateOptions);
  const { agent, ...settings } = start;
  const input = createRunInput(agent, { ...claim(by, door), ...withoutDoor(settings), open: true });
  return await askOrStart(client, message, {
    ...name,
    taskQueue: to.taskQueue,
    input,
    ...updateOptions,
  });
}

/** The time limit for connecting; a reachable server answers in a fraction of it. */
const CONNECT_MS = 5_000;

const checkedLater = z.unknown().optional();
const clientOptions = z.strictObject({
  address: z.string().optional(),
  namespace: z.string().optional(),
  taskQueue: z.string().optional(),
  home: z.string().optional(),
  config: expectedHidden(
    'a configuration; make it with defineConfig({…})',
    (config) => isObject(config) && Array.isArray(config['agents']),
  ).optional(),
  env: checkedLater,
  client: checkedLater,
  archive: checkedLater,
  blobs: checkedLater,
  toolLock: checkedLater,
  by: checkedLater,
  answers: z.literal(false).optional(),
  encryption: checkedLater,
} satisfies OptionSchemas<ClientOptions>);

function assertClientOptions(options: ClientOptions): void {
  const target = { schema: clientOptions, options };
  checkOptions('createClient', target, (text) => new InputError(text));
  claim(options.by);
}

/**
 * Connects to the server. Rejects with a `NoServerError` if none answers, and with an `InputError`
 * if an option is invalid. `startWorker`: see `ClientOrigin`. `runnable`: makes the commands in texts
 * runnable; by default, they begin with `perdure`.
 */
export async function openClient(
  settings: ClientOptions,
  {
    startWorker,
    runnable = asItIs,
  }: Pick<ClientOrigin, 'startWorker'> & { readonly runnable?: Runnable } = {},
): Promise<PerdureClient> {
  assertClientOptions(settings);
  assertOneSdk();
  const { config, env = process.env, answers: mayAnswerBy } = settings;
  const home = settings.home ?? perdureHome(env);
  const keyring = keyringFrom(settings.encryption ?? config?.encryption, env);
  const { client, disconnect } = await connect(settings, { env, home, keyring });
  setIdHashing(client, keyring?.ids ?? null);
  const taskQueue = settings.taskQueue ?? resolveTaskQueue(config ?? {}, env);
  const stores = openStores(home, env);
  const { archive = stores.archive, blobs: givenBlobs = stores.blobs } = settings;
  const blobs = sealedBlobs(givenBlobs, keyring);
  const streams = openStreams(client, { home, env });
  const isMute = mayAnswerBy === false;
  const origin = { ...originOf(settings, { env, home }), startWorker };
  const place = { client, disconnect, config, archive, blobs, streams, taskQueue, origin };
  return clientFor({ ...place, isMute, keyring, runnable }, actorOf(settings));
}

const asItIs: Runnable = (text) => text;

function originOf(
  { address, client, config, taskQueue }: ClientOptions,
  { env, home }: { readonly env: NonNullable<ClientOptions['env']>; readonly home: string },
): ClientOrigin {
  const hasQueue = taskQueue !== undefined || config !== undefined;
  const named = (): string | null => namedAddress({ address: address ?? config?.address }, env);
  return {
    hasDefaultQueue: !hasQueue && env['PERDURE_TASK_QUEUE'] === undefined,
    configQueue: resolveTaskQueue(config ?? {}, env),
    isNamed: client !== undefined || named() !== null,
    home,
  };
}

/** What the clients of all actors share. */
interface ClientPlace extends Omit<ClientParts, 'as' | 'plain'> {
  readonly disconnect: () => Promise<void>;
  readonly config: ClientOptions['config'];
  /** No message of the client decides. */
  readonly isMute: boolean;
  readonly origin: ClientOrigin;
  readonly runnable: Runnable;
}

function clientFor(place: ClientPlace, actor: ActorClaim): PerdureClient {
  const { client, disconnect, config, archive, blobs, streams } = place;
  const { taskQueue, origin, isMute, runnable } = place;
  const { by } = actor;
  const withBy = withActor(actor);
  const methods: Omit<PerdureClient, 'run'> = {
    async start(agent, message, options = {}) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the run checks the arguments
      const all = {
        ...messageFields(message, true),
        ...options,
      } as RunStart;
      const { id: chosen, reuseId, artifacts, ...given } = all;
      assertStart(config, agent, given);
      const name = await nameRun(client, {
        id: chosen,
        agent: agentName(agent),
        tenant: given.tenant,
        reuseId,
      });
      const input = createRunInput(agent, {
        ...(given.by === undefined ? actor : {}),
        ...withoutDoor(given),
        ...(await claimAttachments(blobs, name.id, given)),
        ...(await storeArtifacts(blobs, name.id, { artifacts })),
      });
      return await startRun(client, input, { ...name, taskQueue, reuseId });
    },
    attach: (bytes, options = {}) => attach(blobs, bytes, options),
    async fork(run, given) {
      const options = withoutDoor(given);
      assertForkOptions(options);
      const sender = given.by === undefined ? actor : {};
      const id = await storedId(client, run, archive);
      return await forkRun(client, id, { ...sender, ...options }, { blobs, archive, config });
    },
    async send(run, message, given = {}) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the run checks the arguments
      const options = given as SendOptions;
      const how = withBy('send', options);
      assertStart(config, options.start?.agent, options.start);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the run checks the arguments
      const to = { run, message: message as string | MessageInput, taskQueue, blobs, isMute };
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the number has the type of the output
      return (await sendMessage(client, to, { ...options, ...how })) as never;
    },
    async result(run, options = {}) {
      assertOptionNames<ResultOptions>(options, { turn: true, signal: true }, 'result');
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by the agent itself
      return (await waitForResult(client, await storedId(client, run, archive), {
        ...options,
        archive,
        origin,
      })) as never;
    },
    ...readMethods(client, { archive, streams, runnable }),
    ...controlMethods(client, withBy),
    ...decisionMethods(client, { withBy, by, blobs, runnable }),
    schedule: createSchedules(client, { taskQueue, by, config }),
    batch(agent, tasks, options) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the run checks the arguments
      const given = options as BatchOptions;
      // A task may have the arguments.
      assertKnownAgent(config, agent, { ...given, args: given.args ?? null });
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the run checks the arguments
      const work = { agent, tasks: tasks as readonly BatchTask[], taskQueue, origin, config };
      return createBatch(client, work, { ...(by && { by }), ...given });
    },
    disconnect,
    [Symbol.asyncDispose]: disconnect,
  };
  const all = withFormerNames({ ...methods, run: runWith(methods) });
  const created = withExplainedErrors(all, { client, archive }, { path: 'client', run: null });
  parts.set(created, {
    ...place,
    as: (other) => clientFor(place, other),
    plain: () => clientFor({ ...place, runnable: asItIs }, actor),
  });
  return created;
}

/** Opens the streams of runs: of this process, and of the workers that share the home or are named as hosts. */
function openStreams(
  client: Client,
  { home, env }: { readonly home: string; readonly env: NonNullable<ClientOptions['env']> },
): RunStreams {
  return createRunStreams(client, {
    ownProcess: true,
    sources: [
      liveWorkers(home, {
        hosts: readLiveHosts(env),
        codecs: client.options.loadedDataConverter.payloadCodecs,
      }),
    ],
    unreachable: (why) => process.emitWarning(why, { code: 'PERDURE_LIVE_UNREACHABLE' }),
  });
}

/** What a client is made of: the server, the stores, the streams, and the queue for new runs. */
export interface ClientParts {
  readonly client: Client;
  readonly archive: Archive;
  readonly blobs: BlobStore;
  readonly streams: RunStreams;
  readonly taskQueue: string;
  /** Null without encryption. */
  readonly keyring: Keyring | null;
  /** Returns the same client for someone else: what it sends is by this actor. */
  readonly as: (actor: ActorClaim) => PerdureClient;
  /** Returns the same client, whose texts have commands that begin with `perdure`. */
  readonly plain: () => PerdureClient;
}

const parts = new WeakMap<object, ClientParts>();

/** Returns what a client is made of. Throws an `InputError` for anything but a client of this package. */
export function partsOfClient(client: PerdureClient): ClientParts {
  const found = parts.get(client);
  if (found !== undefined) return found;
  throw new InputError(
    'client: expected a client, got something else; create it with createClient()',
  );
}

/** Returns the method that starts a run and waits for its end. */
function runWith(client: Pick<PerdureClient, 'start' | 'result'>): PerdureClient['run'] {
  return async (agent, message, options = {}) => {
    const given = messageFields(message, true);
    const { signal, ...settings } = { ...given, ...options };
    if ('open' in settings) {
      throw new InputError(
        'run: open: expected a run that ends; start an open run with `start`, and wait with `result`',
      );
    }
    const any: AgentLike<unknown> = agent;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields of `start` without `open`
    const run = await client.start(any, settings as StartOptions);
    const outcome = await client.result(run, { ...(signal && { signal }) });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by the agent itself
    return { ...outcome, id: run.id } as never;
  };
}

/**
 * Adds the names of earlier versions, for programs in JavaScript: they work, and Node warns once
 * with the new name. The types do not have them.
 */
function withFormerNames(client: PerdureClient): PerdureClient {
  const former = {
    ask: deprecate(
      async (...args: Parameters<PerdureClient['send']>) => await client.send(...args),
      'client.ask is now client.send',
      'PERDURE_ASK',
    ),
    cancelTurn: deprecate(
      async (run: RunLike<unknown>, options?: Partial<CancelOptions>) =>
        await client.cancel(run, { turn: true, ...options }),
      'client.cancelTurn(run) is now client.cancel(run, { turn: true })',
      'PERDURE_CANCEL_TURN',
    ),
  };
  for (const [name, value] of Object.entries(former)) {
    Object.defineProperty(client, name, { value, configurable: true });
  }
  return client;
}

/** What a run starts with, without the types of its agent. */
type RunStart = Omit<Parameters<typeof createRunInput>[1], 'artifacts'> &
  ArtifactsField & {
    readonly id?: string;
    readonly reuseId?: boolean;
  };

interface Connected {
  readonly client: Client;
  readonly disconnect: () => Promise<void>;
}

async function connect(
  options: ClientOptions,
  place: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly home: string;
    readonly keyring: Keyring | null;
  },
): Promise<Connected> {
  if (options.client !== undefined) {
    assertEncrypts(options.client, place.keyring);
    return { client: options.client, disconnect: async () => undefined };
  }
  const target = await locateTarget(
    {
      address: options.address ?? options.config?.address,
      namespace: options.namespace ?? options.config?.namespace,
    },
    place,
  );
  try {
    const connection = await Connection.connect({
      ...target.options,
      ...CHANNEL_OPTIONS,
      connectTimeout: CONNECT_MS,
    });
    const client = new Client({
      connection,
      namespace: target.namespace,
      interceptors: { workflow: [clientSpans({ baggage: place.keyring === null })] },
      ...dataConverter(place.keyring),
    });
    return { client, disconnect: () => connection.close() };
  } catch (error) {
    throw unreachable(target.address, error);
  }
}
