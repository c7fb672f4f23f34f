import { readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Agent } from '../agents/agent.js';
import { InputError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { Outcome, Usage } from '../core/transcript/outcome.js';
import type { Model } from '../models/model.js';
import { withCall } from '../models/model-entry.js';
import { normalizeError } from '../tools/result/plain.js';
import { namesHint } from '../validation/near-names.js';
import type { OptionNames } from '../validation/option-names.js';
import { type ComparedCall, comparedCall } from './divergence-text.js';
import { type Divergence, lastOutcome } from './divergence.js';
import { isFunctionCall, nodeCalls } from './node-calls.js';
import { type EvalGates, type GateResult, assertGates, gateResults } from './eval-gates.js';
import { assertScorerTimeout, assertScorers, reasonOf, scoresOf } from './eval-scores.js';
import { assertEvaluateOptions } from './eval-options.js';
import { abortOf } from './recorded-results.js';
import { type RecordedRun, type Recording, factsOf } from './recording.js';
import { readRecording, type ReadRecordingOptions } from './recording-files.js';
import { type CandidateModel, modelFrom, rerun } from './rerun.js';

/** One side of a comparison: the recorded run, the same run now, or the run with another model. */
export interface EvalRun {
  /** Of an open run, that of its last turn; null if it has none. */
  readonly outcome: Outcome | null;
  /** The answer of the last turn; null if there is none. */
  readonly answer: string | null;
  /**
   * The calls that the model asked for, of all agents, in order; after those of a graph, the calls of
   * tools that its nodes executed, such as the actions of a plan.
   */
  readonly calls: readonly ComparedCall[];
  readonly steps: number;
  readonly usage: Usage;
  /** The time of all model calls in ms, without failed attempts and waits; null without a model. */
  readonly latencyMs: number | null;
  /** Where it first differs from the recording; null if it does not. */
  readonly divergence: Divergence | null;
  /** Null if the run did not end. */
  readonly recording: Recording | null;
}

/** What a scorer gets. */
export interface ScoredRun {
  /** The name of the case: its file without `.json`. */
  readonly name: string;
  /** The message that started the run; empty if it was started otherwise. */
  readonly input: string;
  /** The run with the candidate, which is scored. */
  readonly run: EvalRun;
  readonly recorded: EvalRun;
}

/** A score from 0 to 1, or whether it is right; with a reason for people, if given. */
export type Score =
  | number
  | boolean
  | { readonly score: number | boolean; readonly reason?: string };

/** Scores one run with the candidate. An error that it throws fails the run. */
export type Scorer = (given: ScoredRun) => Score | Promise<Score>;

/** Scorers by name. */
export type Scorers = Readonly<Record<string, Scorer>>;

/** Options of `evaluate`. */
export interface EvaluateOptions extends ReadRecordingOptions {
  /**
   * The agents as they are now, by whose names the recordings find theirs: a case of another agent
   * fails. Default: as the runs have pinned them.
   */
  readonly agents?: readonly Agent[];
  /**
   * The candidate: its name at a provider, an entry as in `models` of a configuration, or an adapter.
   * A function gives another one for each run of each case.
   */
  readonly model: CandidateModel | ((recording: Recording) => CandidateModel);
  /** How often each case is run with the candidate; default 1, at most 100. */
  readonly runs?: number;
  /** How many cases are run at once; default 4. */
  readonly atOnce?: number;
  /** Functions that give each run a score from 0 to 1, by name; default: none. */
  readonly scorers?: Scorers;
  /** Milliseconds that a scorer may take for one run; default 120,000. One that takes longer fails the run. */
  readonly scorerTimeoutMs?: number;
  /** What the candidate must reach to pass; default: nothing. */
  readonly gates?: EvalGates;
  /**
   * When it aborts, no more runs begin, and `evaluate` returns those that are over, with `finished`
   * false. What is running then is left to itself. Default: none.
   */
  readonly signal?: AbortSignal;
  /** Called after each run with the candidate, and for each case that cannot be run. Default: none. */
  readonly onProgress?: (progress: EvalProgress) => void;
}

const OPTIONS: OptionNames<EvaluateOptions> = {
  encryption: true,
  agents: true,
  model: true,
  runs: true,
  atOnce: true,
  scorers: true,
  scorerTimeoutMs: true,
  gates: true,
  signal: true,
  onProgress: true,
};

/** The progress of an evaluation. */
export interface EvalProgress {
  readonly name: string;
  /** The number of runs that are over, of `total`. */
  readonly done: number;
  readonly total: number;
  readonly run: CandidateRun;
}

/** A run with the candidate. */
export interface CandidateRun {
  /** Null if it failed with an error. */
  readonly run: EvalRun | null;
  readonly scores: Readonly<Record<string, { readonly score: number; readonly reason?: string }>>;
  /** Why it could not be run or scored; null if it could. */
  readonly error: string | null;
}

/** One case with all its sides. */
export interface EvaluatedCase {
  readonly name: string;
  /** Null if the file could not be read. */
  readonly recorded: EvalRun | null;
  /** With the recorded model and the current agent; null if it could not be run. */
  readonly replayed: EvalRun | null;
  readonly candidates: readonly CandidateRun[];
}

/** What `evaluate` returns. */
export interface Evaluation {
  readonly cases: readonly EvaluatedCase[];
  readonly gates: readonly GateResult[];
  /** Whether all runs are over, and all gates hold. */
  readonly passed: boolean;
  /** False if it was aborted before all runs were over. */
  readonly finished: boolean;
}

const SCORER_MS = 120_000;

/**
 * Runs recorded cases with another model, and compares: what was recorded, what the current agent
 * makes of the recording, and what the candidate does. The results of tools stay recorded; only the
 * model is called. `cases` is a folder of recordings, or one file. A case that fails does not end the
 * others. Rejects with an `InputError` for wrong options, and for a folder without recordings, and with the
 * error of a `model` without a key.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { evaluate } from 'perdure/testing';
 *
 * const desk = defineAgent({ name: 'desk', instructions: 'Help.' });
 * const { cases, passed } = await evaluate('test/cases', {
 *   agents: [desk],
 *   model: 'gpt-5-mini',
 *   runs: 3,
 *   scorers: { polite: ({ run }) => run.answer?.includes('please') ?? false },
 *   gates: { scores: { polite: 0.9 }, tokens: 1.2 },
 * });
 * console.log(passed, cases.length);
 * ```
 */
export async function evaluate(cases: string, options: EvaluateOptions): Promise<Evaluation> {
  assertEvaluateOptions(options, OPTIONS);
  const { agents, model, runs = 1, atOnce = 4, signal, ...rest } = options;
  const { scorers = {}, gates = {}, onProgress = () => undefined } = rest;
  const { scorerTimeoutMs = SCORER_MS, encryption } = rest;
  assertScorers(scorers);
  assertScorerTimeout(scorerTimeoutMs);
  assertGates(gates, scorers);
  const files = await filesIn(cases);
  if (typeof model !== 'function') await modelFrom(model);
  const total = files.length * runs;
  let done = 0;
  const evaluated = new Map<number, EvaluatedCase>();
  const waiting = [...files.entries()];
  const isAborted = (): boolean => signal?.aborted === true;
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined && !isAborted(); next = waiting.shift()) {
      const [index, { name, file }] = next;
      await evaluateCase(file, {
        name,
        ...(agents !== undefined && { agents }),
        ...(encryption && { encryption }),
        scorers,
        scorerTimeoutMs,
        runs,
        isAborted,
        modelOf: typeof model === 'function' ? model : () => model,
        note: (soFar) => void evaluated.set(index, soFar),
        report(run, count = 1) {
          done += count;
          if (!isAborted()) onProgress({ name, done, total, run });
        },
      });
    }
  };
  const all = Promise.all(Array.from({ length: Math.min(atOnce, files.length) }, work));
  await (signal === undefined ? all : Promise.race([all, abortOf(signal)]));
  const finished = done === total;
  const known = [...evaluated].toSorted(([one], [other]) => one - other).map(([, each]) => each);
  const results = gateResults(gates, known);
  const passed = finished && results.every((gate) => gate.passed);
  return { cases: known, gates: results, passed, finished };
}

function nameOf(file: string): string {
  return file.replace(/\.json$/, '');
}

/** Returns the recordings of a folder by name, sorted; or the one file. */
async function filesIn(
  place: string,
): Promise<readonly { readonly name: string; readonly file: string }[]> {
  try {
    if ((await stat(place)).isFile()) return [{ name: nameOf(place), file: place }];
    const entries = await readdir(place, { withFileTypes: true });
    const found = await Promise.all(
      entries
        .filter(({ name }) => name.endsWith('.json'))
        .map(async (one) => {
          const file = join(place, one.name);
          if (!one.isSymbolicLink()) return one.isFile() ? [{ name: nameOf(one.name), file }] : [];
          // The large texts are beside the file itself. A link that leads nowhere is a case that fails.
          const target = await realpath(file).catch(() => file);
          const isFolder = await stat(target).then(
            (known) => known.isDirectory(),
            () => false,
          );
          return isFolder ? [] : [{ name: nameOf(one.name), file: target }];
        }),
    );
    const names = found.flat();
    if (names.length > 0) return names.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  } catch (error) {
    const { message } = normalizeError(error);
    const isMissing = isObject(error) && error['code'] === 'ENOENT';
    const got = isMissing
      ? `got ${show(place)}, which does not exist`
      : `got an error (${message})`;
    throw new InputError(`cases: expected a readable folder of recordings, ${got}`, {
      cause: error,
    });
  }
  throw new InputError(
    `cases: expected recordings (*.json) in ${visible(place)}, got none; record runs with: perdure record ID --out FILE`,
  );
}

interface CaseOptions
  extends
    Pick<EvaluateOptions, 'agents' | 'encryption'>,
    Required<Pick<EvaluateOptions, 'scorers' | 'scorerTimeoutMs' | 'runs'>> {
  readonly name: string;
  readonly isAborted: () => boolean;
  readonly modelOf: (recording: Recording) => CandidateModel;
  /** Called with each run that is over. `count`: the runs that a case which cannot be read stands for. */
  readonly report: (run: CandidateRun, count?: number) => void;
  /** Called with the case after each of its runs, and when it is over. */
  readonly note: (soFar: EvaluatedCase) => void;
}

/** Evaluates one case. Never rejects. */
async function evaluateCase(
  file: string,
  { name, agents, scorers, scorerTimeoutMs, runs, ...rest }: CaseOptions,
): Promise<void> {
  const { isAborted, modelOf, report, note, ...reading } = rest;
  let recorded: EvalRun | null = null;
  let recording: Recording;
  let options: { readonly agent?: Agent };
  try {
    recording = await readRecording(file, reading);
    recorded = recordedRun(recording);
    options = agents === undefined ? {} : { agent: agentOf(recording, agents) };
  } catch (error) {
    const failed = failedRun(error);
    note({ name, recorded, replayed: null, candidates: [failed] });
    report(failed, runs);
    return;
  }
  const input = recording.runs[0]?.input.message ?? '';
  const candidates: CandidateRun[] = [];
  for (let run = 0; run < runs && !isAborted(); run += 1) {
    let candidate: CandidateRun;
    try {
      const { model, latencyMs } = timed(await modelFrom(modelOf(recording)));
      const again = await rerun(recording, { ...options, model });
      const made = { ...sideOf(again), latencyMs: latencyMs() };
      const scores = await scoresOf(scorers, { name, input, run: made, recorded }, scorerTimeoutMs);
      candidate = { run: made, ...scores };
    } catch (error) {
      candidate = failedRun(error);
    }
    candidates.push(candidate);
    note({ name, recorded, replayed: null, candidates: [...candidates] });
    report(candidate);
  }
  if (isAborted()) return;
  const replayed = await rerun(recording, options).then(sideOf, () => null);
  note({ name, recorded, replayed, candidates });
}

/** Returns the agent of a recording. Throws an `InputError` if there is none of its name. */
function agentOf({ runs }: Recording, agents: readonly Agent[]): Agent {
  const name = runs[0]?.agent ?? '';
  const agent = agents.find((one) => one.name === name);
  if (agent !== undefined) return agent;
  const known = agents.map((one) => visible(one.name));
  const hint = known.length === 0 ? '' : ` (${namesHint(name, known, 'given')})`;
  throw new InputError(
    `agent: expected one of the given agents, got "${visible(name)}"${hint}; give the agent of the recording`,
  );
}

function failedRun(error: unknown): CandidateRun {
  return { run: null, scores: {}, error: reasonOf(error) };
}

/** Returns a model, and the time that its calls have taken together, without those that failed. */
function timed(model: Model): { readonly model: Model; readonly latencyMs: () => number } {
  let sum = 0;
  return {
    model: withCall(model, async (request, context) => {
      const begin = performance.now();
      const reply = await model.call(request, context);
      sum += performance.now() - begin;
      return reply;
    }),
    latencyMs: () => Math.round(sum),
  };
}

const NOTHING_USED: Usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, costUsd: null };

function sideOf({
  outcome,
  divergence,
  recording,
}: Pick<EvalRun, 'outcome' | 'divergence' | 'recording'>): EvalRun {
  const [root] = recording?.runs ?? [];
  const calls = recording?.runs.flatMap((run) => [
    ...run.messages
      .flatMap((one) => (one.role === 'assistant' ? (one.calls ?? []) : []))
      .map((call): ComparedCall => comparedCall(call)),
    ...nodeCalls(run, recording)
      .filter((call) => !isFunctionCall(call))
      .map(({ tool, arguments: args }) => ({ tool, arguments: args })),
  ]);
  return {
    outcome,
    answer: outcome?.answer ?? null,
    calls: calls ?? [],
    steps: root?.spent.steps ?? 0,
    usage: root?.spent.usage ?? NOTHING_USED,
    latencyMs: null,
    divergence,
    recording,
  };
}

function recordedRun(recording: Recording): EvalRun {
  const [root] = recording.runs;
  const outcome = root === undefined ? null : lastOutcome(root);
  const took = factsOf(recording, 'reply').map(({ fact }) => fact.tookMs);
  const latencyMs = took.reduce((sum, ms) => sum + ms, 0);
  const side = sideOf({ outcome, divergence: null, recording });
  return { ...side, answer: side.answer ?? (root ? lastAnswer(root) : null), latencyMs };
}

/** Returns the answer of an open run of a recording that does not have its last outcome. */
function lastAnswer({ outcome, lastTurn, messages }: RecordedRun): string | null {
  if (outcome !== null || lastTurn !== undefined) return null;
  const last = messages.at(-1);
  return last?.role === 'assistant' && (last.calls ?? []).length === 0 ? last.text : null;
}
