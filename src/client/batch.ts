import type { Client } from '@temporalio/client';
import { z } from 'zod';
import { sha256Hex, canonicalJson, type Json } from '../core/text/json.js';
import { withoutDoor } from '../core/input/turn-context.js';
import type { RunInput } from '../core/input/input.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { nothingSpent } from '../core/state/turn.js';
import { assertStart, type KnownAgent } from './fork-run.js';
import { messageFields } from './given.js';
import type { ClientOrigin } from './no-worker.js';
import { waitForResult } from './status.js';
import {
  agentName,
  createRunInput,
  type AgentLike,
  type RunSettings,
  startRun,
} from '../updates/start.js';
import { IdTakenError, InputError, NoRunError } from '../core/errors.js';
import { checkOptions, expected, type OptionSchemas } from '../validation/check-options.js';
import { hashedId } from '../temporal/stored-ids.js';
import { type RunName, nameRun } from './run-ids.js';
import { runSettings } from './schedule/options.js';

/** One task of a batch: a message, or a message with its own settings. */
export type BatchTask<Args = unknown> = string | (RunSettings<Args> & { readonly message: string });

/** The id of a batch, how many of its runs are open at once, and the settings of each run. */
export interface BatchOptions<Args = unknown> extends RunSettings<Args> {
  /** Names the batch. The same id with the same tasks finds the existing runs. */
  readonly id: string;
  /** How many runs are open at the same time; default 4. */
  readonly atOnce?: number;
  /** Stops starting runs and ends the wait. Runs that were started continue. Default: none. */
  readonly signal?: AbortSignal;
}

/** The outcome of one task of a batch, with the index of the task. */
export interface BatchResult<Output = Json> {
  /** The index of the task, from 0. */
  readonly index: number;
  /** The id of the run. */
  readonly id: string;
  readonly outcome: Outcome<Output>;
}

/** Yields the results as they become ready. Starts nothing before it is iterated. */
export interface RunBatch<Output = Json> extends AsyncIterable<BatchResult<Output>> {
  /** Returns all results, in the order of the tasks. */
  all(): Promise<readonly BatchResult<Output>[]>;
}

const AT_ONCE = 4;
const MAX_ID_CHARACTERS = 200;

const batchOptions = z.strictObject({
  id: expected(
    `a string of 1 to ${MAX_ID_CHARACTERS} characters`,
    (id) => typeof id === 'string' && id !== '' && id.length <= MAX_ID_CHARACTERS,
  ),
  atOnce: expected(
    'a whole number from 1',
    (count) => Number.isInteger(count) && Number(count) > 0,
  ).optional(),
  signal: expected('an AbortSignal', (signal) => signal instanceof AbortSignal).optional(),
  ...runSettings,
} satisfies OptionSchemas<BatchOptions>);

/**
 * Starts one run per task, some at the same time, and collects their outcomes. A task that cannot
 * be started and a run that fails also produce an outcome. The ids of the runs are derived from the
 * id of the batch and the tasks, so a program that crashed resumes its batch by starting it again.
 * Iterating rejects if the server stays unreachable, and with the signal's reason. Throws an
 * `InputError` if an option is invalid.
 */
export function createBatch<Output>(
  client: Client,
  { agent, tasks, taskQueue, origin, config }: BatchWork<Output>,
  options: BatchOptions,
): RunBatch<Output> {
  checkOptions('batch', { schema: batchOptions, options }, (text) => new InputError(text));
  const { id, atOnce = AT_ONCE, signal, ...settings } = options;
  const work = async (index: number, over: AbortSignal): Promise<BatchResult<Output>> => {
    const task = tasks[index] ?? '';
    const given = { ...settings, ...(typeof task === 'string' ? { message: task } : task) };
    const chosen = `${id}-${index}-${digestOf(agent, given)}`;
    let run = hashedId(client, 'run', chosen);
    const until = signal === undefined ? over : AbortSignal.any([over, signal]);
    const outcome = await outcomeOf(async () => {
      until.throwIfAborted();
      messageFields(task);
      assertStart(config, agent, given);
      const name = await nameRun(client, { id: chosen, agent: agentName(agent) });
      run = name.id;
      const input = createRunInput(agent, withoutDoor(given));
      await startOrFind(client, input, { ...name, taskQueue });
      return await waitForResult(client, run, { signal: until, origin });
    });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by the agent itself
    return { index, id: run, outcome: outcome as Outcome<Output> };
  };
  const results = () => mapAsReady(tasks.length, work, { atOnce });
  return {
    [Symbol.asyncIterator]: results,
    async all() {
      const all: BatchResult<Output>[] = [];
      for await (const result of results()) all.push(result);
      return all.toSorted((one, other) => one.index - other.index);
    },
  };
}

interface BatchWork<Output> {
  readonly agent: AgentLike<Output>;
  readonly tasks: readonly BatchTask[];
  readonly taskQueue: string;
  readonly origin: ClientOrigin;
  /** The agents that the client knows; absent if it knows none. */
  readonly config: { readonly agents: readonly KnownAgent[] } | undefined;
}

async function startOrFind(
  client: Client,
  input: RunInput,
  place: RunName & { readonly taskQueue: string },
): Promise<void> {
  await startRun(client, input, place).catch((error: unknown) => {
    if (!(error instanceof IdTakenError)) throw error;
  });
}

/** Turns an invalid task into a failed outcome; all other errors are thrown. */
async function outcomeOf(run: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof InputError || error instanceof NoRunError)) throw error;
    const { steps, toolCalls, usage } = nothingSpent(null);
    const nothing = { answer: null, output: null, steps, toolCalls, usage, segments: 0 };
    return { status: 'failed', reason: 'input', ...nothing, error: error.message };
  }
}

/** Returns a digest of a task, so that a different task at the same index gets a different run. */
function digestOf(agent: AgentLike<unknown>, given: RunSettings): string {
  const { by: _, ...task } = given;
  const json: Json = JSON.parse(JSON.stringify({ ...task, agent: agentName(agent) }));
  return sha256Hex(canonicalJson(json)).slice(0, 8);
}

/**
 * Calls `work` for each index from 0, at most `atOnce` at the same time, and yields the values as
 * they become ready. A slow reader does not delay work. Rejects with the first rejection; after
 * that, or when the reader stops, no more work is started and `signal` aborts.
 */
export async function* mapAsReady<T>(
  count: number,
  work: (index: number, signal: AbortSignal) => Promise<T>,
  { atOnce }: { readonly atOnce: number },
): AsyncGenerator<T, void, undefined> {
  const over = new AbortController();
  const ready: (() => T)[] = [];
  let wake: (() => void) | null = null;
  let next = 0;

  const worker = async (): Promise<void> => {
    while (next < count && !over.signal.aborted) {
      const index = next;
      next += 1;
      try {
        const value = await work(index, over.signal);
        ready.push(() => value);
      } catch (error) {
        ready.push(() => {
          throw error;
        });
        return;
      } finally {
        wake?.();
      }
    }
  };

  try {
    for (let place = 0; place < Math.min(atOnce, count); place += 1) void worker();
    for (let given = 0; given < count; given += 1) {
      while (ready.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      const take = ready.shift();
      if (take !== undefined) yield take();
    }
  } finally {
    over.abort();
  }
}
