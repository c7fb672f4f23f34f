import type { Agent } from '../agents/agent.js';
import { assertAgent } from '../agents/given-agent.js';
import type { Limits } from '../core/definition/definition.js';
import { InputError } from '../core/errors.js';
import { isForked } from '../core/guards/recorded.js';
import type { Activities } from '../core/run/contract.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { decodeEvents } from '../history/decode-event.js';
import type { CurrentActivity } from '../memory/attempt.js';
import type { MemoryRun } from '../memory/memory-run.js';
import type { Model } from '../models/model.js';
import { noteNames } from '../memory/note-names.js';
import { assertOptionNames } from '../validation/option-names.js';
import type { ModelEntry, ModelFacts } from '../models/model-entry.js';
import { assertCallable } from '../models/uncallable.js';
import {
  type Divergence,
  type Found,
  earlierOf,
  firstDifference,
  requestOrEarlier,
} from './divergence.js';
import { decisionsOf, ofNodes, placedRequest, unasked } from './decided-requests.js';
import { generatedModels } from './generated-replies.js';
import { recordEvents } from './record-histories.js';
import { recordedAgent } from './recorded-agent.js';
import { candidateModel, factsOfModel, recordedModel } from './recorded-model.js';
import { recordedScript } from './recorded-script.js';
import { type LiveTools, checkLiveTools, withRecordedTools } from './recorded-tools.js';
import {
  type FactOf,
  type RecordedRun,
  type Recording,
  createRecording,
  keysOf,
  withKeys,
} from './recording.js';

/** A model to try: its name at a provider, an entry as in a configuration, or an adapter. */
export type CandidateModel = string | ModelEntry;

/** Options of `rerun`. */
export interface RerunOptions {
  /**
   * The agent as it is now, with the agents that it calls. Default: as the run has pinned it, which
   * is possible if it is data: no graph, no `decide` function, no `output` function, no named prompts.
   */
  readonly agent?: Agent;
  /**
   * Another model: its name at a provider, an entry as in `models` of a configuration, or an adapter.
   * Default: the recorded replies.
   */
  readonly model?: CandidateModel;
  /** Tools that are executed, by name: only those with the effect `read`. Default: all results are recorded. */
  readonly tools?: LiveTools;
}

/**
 * What a rerun did, and where it first differs from the recording. It has what the matchers read:
 * `effects` are the calls whose recorded results were given, and the live ones.
 */
export interface Rerun extends Pick<MemoryRun, 'effects' | 'requests'> {
  readonly transcript: Pick<MemoryRun['transcript'], 'messages'>;
  /** The first difference; null if there is none. */
  readonly divergence: Divergence | null;
  /** Null if the run has none, since it waits for a decision that the recording does not have. */
  readonly outcome: Outcome | null;
  /** The rerun as a recording of its own. */
  readonly recording: Recording;
}

/**
 * Executes a recorded run again in this process: with the current agent, the recorded replies and
 * results, and the recorded decisions of people. No model, tool, MCP server, or network is called.
 *
 * The current parsers, schemas, rules, predicates, templates, decide functions, and functions of
 * graphs are executed. With a `model`, that model is called for each step; the results of tools stay
 * recorded, by name and arguments. The first difference is a value, never a guess: what the recording
 * does not have ends the rerun. Rejects with an `InputError` for an agent that cannot be rerun, and with the error of a
 * `model` that cannot be called.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { readRecording, rerun } from 'perdure/testing';
 *
 * const desk = defineAgent({ name: 'desk', instructions: 'Help.' });
 * const recording = await readRecording('test/cases/desk-17.json');
 * const { divergence } = await rerun(recording, { agent: desk });
 * if (divergence !== null) throw new Error(divergence.text);
 * ```
 */
export async function rerun(recording: Recording, options: RerunOptions = {}): Promise<Rerun> {
  assertOptionNames<RerunOptions>(options, { agent: true, model: true, tools: true });
  const { agent: given, model, tools = {} } = options;
  if (given !== undefined) assertAgent(given);
  const [root] = recording.runs;
  if (root === undefined) throw new InputError('recording: expected a run, got none');
  const agent = given ?? recordedAgent(recording);
  if (root.agent !== agent.name) {
    throw new InputError(
      `agent: expected ${show(root.agent)}, as recorded, got ${show(agent.name)}; give the agent of the recording`,
    );
  }
  checkLiveTools(tools);
  const found: Found = { divergence: null, request: null, failure: null };
  const [{ playPartly }, { createScript }, { currentActivity }] = await Promise.all([
    import('../memory/run-in-memory.js'),
    import('../memory/script.js'),
    import('../memory/attempt.js'),
  ]);
  const isSameModel = model === undefined;
  const idOf = recordedIds(recording);
  const current = (): CurrentActivity | null => {
    const activity = currentActivity();
    return activity && { ...activity, run: idOf(activity.run) };
  };
  const decisions = decisionsOf(recording);
  const shared = { recording, live: tools, found, decisions, isSameModel, current, idOf };
  const own = withRecordedTools(agent, shared);
  const used =
    model === undefined
      ? recordedModel(recording, { found, current })
      : candidateModel(
          priced(await modelFrom(model), [agent.limits, root.input.limits ?? {}]),
          found,
        );
  const { options: scripted, moments } = recordedScript(recording, root, {
    found,
    decisions,
    idOf,
  });
  const played = {
    ...scripted,
    model: used,
    models: model === undefined ? recordedModels(recording, used) : generatedBy(recording, used),
  };
  const { archive: _archive, ...input } = root.input;
  const { run, error } = await playPartly(own, played, {
    script: createScript(played, moments),
    // An agent that is given as data has its arguments in its instructions.
    input: { ...input, ...(given === undefined && { args: {} }) },
    activities: recordedActivities(root),
  });
  // A run that was open when it was recorded is to wait where it waited then.
  const isOpen = root.endedAt === null && error?.isStuck === true;
  // What a model did not reply says nothing about what it would do, also where the run ended without it.
  const isFound = found.divergence !== null || found.request !== null;
  if (!isFound && found.failure !== null) throw found.failure;
  const again = withKeys(withRunIds(recordingOf(run, recording), idOf), keysOf(recording));
  const compared = isSameModel ? 'all' : 'calls';
  const different =
    earlierOf(found.divergence, firstDifference(recording, again, compared)) ??
    (error === null ? unasked(isSameModel ? decisions : ofNodes(decisions)) : null);
  const isSame = different === null && (error === null || isOpen);
  const divergence = isSame
    ? null
    : requestOrEarlier(found.request && placedRequest(found.request, again), different);
  if (error !== null && !isOpen && divergence === null) throw error.cause;
  const { outcome, transcript, effects, requests } = run;
  const result = { divergence, outcome, recording: again, transcript, effects, requests };
  const pinned = recording.runs.flatMap((one) => one.definitions.flatMap((each) => each.tools));
  noteNames(result, [agent], pinned);
  return result;
}

/**
 * Returns a function that returns the recorded id of a run of the rerun. The id of a called run ends
 * with a part of the key of its call, and the key depends on the server's run id of the first caller,
 * which is another one in a rerun. A run that is not recorded keeps its id.
 */
function recordedIds({ runs }: Recording): (id: string) => string {
  const ids = runs.map(({ id }) => id);
  const [root = ''] = ids;
  const byPlace = new Map(ids.map((id) => [placeOf(id, root), id]));
  return (id) => (ids.includes(id) ? id : (byPlace.get(placeOf(id, root)) ?? id));
}

/** Returns the calls that lead to a run: its id without the keys. */
function placeOf(id: string, root: string): string {
  if (!id.startsWith(`${root}/`)) return id;
  return id.slice(root.length).replace(/-[0-9a-f]{16}(?=\/|$)/g, '');
}

/** Returns a recording in which each run has the id that `idOf` returns. */
function withRunIds({ runs, ...rest }: Recording, idOf: (id: string) => string): Recording {
  const renamed = runs.map(({ id, facts, ...run }): RecordedRun => ({
    ...run,
    id: idOf(id),
    facts: facts.map((fact) => (fact.type === 'called' ? { ...fact, run: idOf(fact.run) } : fact)),
  }));
  return { ...rest, runs: renamed };
}

/** Returns the recorded model under the names that the runs have called it by, with its facts. */
function recordedModels({ runs }: Recording, model: Model): Readonly<Record<string, ModelEntry>> {
  const named = runs.flatMap((run) => {
    const entry = { ...model, ...factsOfModel(run) };
    return run.definitions.map(({ model: name }) => [name, entry] as const);
  });
  const own = Object.fromEntries(named.filter(([name]) => name !== ''));
  return { ...generatedBy({ runs }, model), ...own };
}

/** Returns a model under the names by which the functions of nodes have called one. */
function generatedBy(
  { runs }: Pick<Recording, 'runs'>,
  model: Model,
): Readonly<Record<string, ModelEntry>> {
  return Object.fromEntries(runs.flatMap(generatedModels).map((name) => [name, model]));
}

/**
 * Returns the model that is to be called. Rejects with an `InputError` for an entry that cannot be used, and
 * with the `ModelError` of a model without a key.
 */
export async function modelFrom(model: CandidateModel): Promise<Model & ModelFacts> {
  const found = await resolved(model);
  await assertCallable(found);
  return found;
}

async function resolved(model: CandidateModel): Promise<Model & ModelFacts> {
  if (typeof model !== 'string' && 'call' in model) return model;
  const { createModelCatalog, standInFor } = await import('../models/model-catalog.js');
  const [name, entries] = typeof model === 'string' ? [model, {}] : [MODEL, { [MODEL]: model }];
  return standInFor(createModelCatalog(entries, process.env).resolve(name));
}

/**
 * Returns the model. Throws an `InputError` if it has no price, and one of the limits is a cost: the
 * price that the run knows is that of the recorded model.
 */
function priced(model: Model & ModelFacts, limits: readonly Limits[]): Model {
  const isLimited = limits.some(({ costUsd, run }) =>
    [costUsd, run?.costUsd].some(Number.isFinite),
  );
  if (model.price !== undefined || !isLimited) return model;
  throw new InputError(
    'model: expected one with a price, since the run has limits.costUsd, got one whose price is unknown; give `price` with the model, as in an entry of `models`',
  );
}

/** The name of an entry that is given alone. */
const MODEL = 'model';

/** Returns the activities whose results a run in memory cannot find again: those that read another run. */
function recordedActivities({
  input,
  facts,
}: RecordedRun): Partial<Pick<Activities, 'forkMessages'>> {
  if (input.fork === undefined) return {};
  const copied = facts.findLast(
    (fact): fact is FactOf<'activity'> =>
      fact.type === 'activity' && fact.activity === 'forkMessages',
  )?.result;
  if (!isForked(copied)) {
    throw new InputError(
      `recording: expected the messages of ${show(input.fork.run)}, from which the run was forked, got none; record a run that has begun`,
    );
  }
  return { forkMessages: async () => await Promise.resolve(copied) };
}

/** Returns the recording of a run in memory; it keeps the large texts of another one. */
export function recordingOf(
  { history }: Pick<MemoryRun, 'history'>,
  { blobs }: Pick<Recording, 'blobs'>,
): Recording {
  const ids = [...new Set(history.map(({ id }) => id))];
  const runs = ids.flatMap((id) => {
    const segments = history
      .filter((one) => one.id === id)
      .map((one) => decodeEvents(id, one.history.events));
    const run = recordEvents({ id, segments });
    return run === null || !isObject(run.input) ? [] : [run];
  });
  return createRecording(runs, blobs);
}
