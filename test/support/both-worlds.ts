import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { Agent } from '../../src/agents/agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { MemoryRun } from '../../src/memory/memory-run.js';
import type { MemoryOptions } from '../../src/memory/run-in-memory.js';
import type { Model } from '../../src/models/model.js';
import type { ScriptStep } from '../../src/testing/script.js';
import { type Action, runInMemory, scriptedModel } from '../../src/testing.js';

/** A script that both a server and memory can play: the order of what happens does not depend on time. */
export interface Scenario {
  readonly agent: Agent;
  /** The first message; it names the scenario if several run at once. Default: `Go`. */
  readonly message?: string;
  readonly model: readonly ScriptStep[];
  readonly options?: Pick<MemoryOptions, 'limits' | 'open'>;
  /** By tool or kind, as in `on.request`. */
  readonly decides?: Readonly<Record<string, Action>>;
  /** What happens just before the n-th model call. */
  readonly step?: Readonly<Record<number, Action>>;
  readonly waiting?: readonly Action[];
  /** Where the worker dies in memory; on a server, it does not die, and the run must be the same. */
  readonly faults?: NonNullable<MemoryOptions['faults']>;
}

/** What a caller, a reader, and a model have seen of a run. */
export type Seen = Pick<MemoryRun<unknown>, 'outcome' | 'status' | 'transcript'> & {
  readonly requests: readonly unknown[];
  readonly modelRequests: readonly unknown[];
};

/** Plays a scenario in memory. */
export async function inMemory(scenario: Scenario): Promise<Seen & Pick<MemoryRun, 'history'>> {
  const { agent, message = 'Go', model, options, decides = {}, step = {}, waiting = [] } = scenario;
  return await runInMemory(agent, {
    message,
    ...options,
    model: untilCanceled(scriptedModel(model), step),
    on: { request: decides, step, waiting },
    faults: scenario.faults ?? [],
  });
}

/** Lets a model reply to a call that is canceled only when it knows of that, whether it learns of it soon or late. */
function untilCanceled(model: Model, step: NonNullable<Scenario['step']>): Model {
  let calls = 0;
  return {
    async call(request, context) {
      calls += 1;
      const isCanceled = step[calls]?.type.startsWith('cancel') === true;
      if (isCanceled && !context.signal.aborted) await once(context.signal, 'abort');
      return await model.call(request, context);
    },
  };
}

const LIMIT_MS = 50_000;

/** Plays a scenario on a server. `serve` lets a worker take the model's calls. */
export async function onServer(
  scenario: Scenario,
  { client, temporal }: { readonly client: PerdureClient; readonly temporal: Client },
  serve: (model: Model) => Promise<void> | void,
): Promise<Seen> {
  const { agent, message = 'Go', options = {}, decides = {}, step = {}, waiting = [] } = scenario;
  const model = untilCanceled(scriptedModel(scenario.model), step);
  const modelRequests: unknown[] = [];
  let [id, calls] = ['', 0];
  let known = (): void => undefined;
  const started = new Promise<void>((resolve) => (known = resolve));
  await serve({
    async call(request, context) {
      await started;
      calls += 1;
      const action = step[calls];
      if (action !== undefined) await perform(client, id, action);
      const { files: _files, ...recorded } = request;
      modelRequests.push(structuredClone(recorded));
      return await model.call(request, context);
    },
  });
  ({ id } = await client.start(agent, { message, ...options }));
  known();
  const requests = new Map<string, unknown>();
  const left = [...waiting];
  const deadline = Date.now() + LIMIT_MS;
  for (;;) {
    const { status, pending, doing } = await client.status(id);
    if (status === 'done') break;
    if (Date.now() > deadline) throw new Error(`${id} does not end: ${status}: ${doing}`);
    // A decision may have to be checked first, and counts then.
    const isChecking = pending.some(({ checking }) => checking);
    const request = isChecking ? undefined : pending.find((one) => !requests.has(one.id));
    if (request !== undefined) {
      const { kind, tool = '' } = request;
      const action = decides[kind] ?? decides[tool];
      if (action?.type !== 'decide') throw new Error(`no decision for ${kind}`);
      requests.set(request.id, { ...request, run: id, decided: [action.decision] });
      await client.resolve(id, { request: request.id, digest: request.digest, ...action.decision });
    }
    if (status === 'waiting_message') await perform(client, id, left.shift() ?? { type: 'close' });
    await pause(20);
  }
  // A run has an outcome before it has ended.
  await temporal.workflow
    .getHandle(id)
    .result()
    .catch(() => undefined);
  const status = await client.status(id);
  if (status.outcome === null) throw new Error(`${id} has no outcome`);
  return {
    transcript: await client.transcript(id, { side: true }),
    outcome: status.outcome,
    status,
    requests: [...requests.values()],
    modelRequests,
  };
}

async function perform(client: PerdureClient, id: string, action: Action): Promise<void> {
  switch (action.type) {
    case 'send': {
      const { attachments: _bound, artifacts: _stored, ...message } = action.message;
      await client.send(id, message);
      return;
    }
    case 'cancel-turn':
      await client.cancel(id, { turn: true });
      return;
    case 'cancel':
      return await client.cancel(id);
    case 'close':
      return await client.close(id);
    default:
      throw new Error(`no scenario has the action ${action.type}`);
  }
}

/** Fields with ids and times of the world in which the run happened. */
const OF_WORLD = new Set([
  'at',
  'digest',
  'expiresAt',
  'fix',
  'historyLength',
  'id',
  'raisedAt',
  'run',
  'runId',
  'waitMs',
]);

/** Writes what both worlds have in common, with sorted keys. */
export function normalized({ transcript, outcome, status, requests, modelRequests }: Seen): string {
  return JSON.stringify(
    { transcript, outcome, status, requests, modelRequests },
    (key, value: unknown) => {
      if (OF_WORLD.has(key)) return undefined;
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
      return Object.fromEntries(
        Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)),
      );
    },
    1,
  );
}
