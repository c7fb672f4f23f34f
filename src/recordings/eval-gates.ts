import { InputError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { Usage } from '../core/transcript/outcome.js';

/** What must hold for the evaluation to pass. No run may fail with an error, in any case. */
export interface EvalGates {
  /** The least mean of a scorer's scores, by its name. Default: none. */
  readonly scores?: Readonly<Record<string, number>>;
  /** The largest share of runs that differ from their recording, 0 to 1; default 0. */
  readonly diverged?: number;
  /**
   * The largest share of the recordings whose replay by the current agents, with the recorded replies,
   * differs from what was recorded, or fails with an error, 0 to 1. Default: any.
   */
  readonly replayed?: number;
  /** The most tokens, as a multiple of the recorded ones, such as 1.2. Default: any number. */
  readonly tokens?: number;
  /** The most US dollars, as a multiple of the recorded ones. Default: any amount. */
  readonly cost?: number;
  /**
   * The longest time of the model calls, as a multiple of the recorded one. It is not measured, and
   * passes, if the recorded time is 0, as in recordings made in memory. Default: any time.
   */
  readonly latency?: number;
}

/** A gate, and what was measured. */
export interface GateResult {
  /** Such as `scores.polite`, `tokens`, or `errors`. */
  readonly name: string;
  readonly bound: number;
  /**
   * Null if it was not measured: the gate fails if no run has ended or a value is unknown, such as a cost
   * without a price, and passes if the recorded latency is 0, as in recordings made in memory.
   */
  readonly actual: number | null;
  readonly passed: boolean;
}

/** What gates read of a run. */
interface MeasuredRun {
  readonly usage: Usage;
  readonly latencyMs: number | null;
  readonly divergence: object | null;
}

/** What gates read of a case. */
interface Measured {
  readonly recorded: MeasuredRun | null;
  readonly replayed: MeasuredRun | null;
  readonly candidates: readonly {
    readonly run: MeasuredRun | null;
    readonly scores: Readonly<Record<string, { readonly score: number }>>;
    readonly error: string | null;
  }[];
}

const RATIOS = ['tokens', 'cost', 'latency'] as const;
/** The gates of a share of the runs, from 0 to 1. */
const SHARES: readonly string[] = ['diverged', 'replayed'];
const GATES: readonly string[] = ['scores', ...SHARES, ...RATIOS];

/** Throws an `InputError` for a gate that nothing could measure. */
export function assertGates(gates: EvalGates, scorers: Readonly<Record<string, unknown>>): void {
  const given: unknown = gates;
  if (!isObject(given)) throw new InputError(`gates: expected an object, got ${show(given)}`);
  for (const [name, bound] of Object.entries(gates)) {
    if (!GATES.includes(name)) {
      throw new InputError(`gates: expected ${GATES.join(', ')}, got ${visible(name)}`);
    }
    if (name !== 'scores')
      assertBound(`gates.${name}`, bound, SHARES.includes(name) ? 1 : Infinity);
  }
  if (gates.scores !== undefined && !isObject(gates.scores)) {
    throw new InputError(`gates.scores: expected an object, got ${show(gates.scores)}`);
  }
  for (const [name, bound] of Object.entries(gates.scores ?? {})) {
    if (!Object.hasOwn(scorers, name)) {
      const known = Object.keys(scorers).map(visible).join(', ');
      const fix = known === '' ? 'add it to the scorers' : `it is one of ${known}`;
      throw new InputError(
        `gates.scores: expected the name of a scorer, got ${visible(name)}; ${fix}`,
      );
    }
    assertBound(`gates.scores.${visible(name)}`, bound, 1);
  }
}

function assertBound(field: string, bound: unknown, most: number): void {
  if (typeof bound === 'number' && bound >= 0 && bound <= most) return;
  const range = most === 1 ? 'from 0 to 1' : 'from 0, a multiple of what was recorded';
  throw new InputError(`${field}: expected a number ${range}, got ${show(bound)}`);
}

/** Returns what each gate makes of the cases. */
export function gateResults(gates: EvalGates, cases: readonly Measured[]): readonly GateResult[] {
  const all = cases.flatMap(({ recorded, candidates }) =>
    candidates.map((candidate) => ({ recorded, candidate })),
  );
  const errors = all.filter(({ candidate }) => candidate.error !== null).length;
  const ended = all.flatMap(({ recorded, candidate: { run } }) =>
    recorded === null || run === null ? [] : [{ recorded, run }],
  );
  const differing = ended.filter(({ run }) => run.divergence !== null).length;
  const diverged = ended.length === 0 ? null : differing / ended.length;
  const scored = Object.entries(gates.scores ?? {}).map(([name, bound]): GateResult => {
    const given = all.flatMap(({ candidate }) => candidate.scores[name]?.score ?? []);
    const actual = given.length === 0 ? null : sumOf(given) / given.length;
    const passed = actual !== null && actual >= bound - ROUNDING;
    return { name: `scores.${name}`, bound, actual, passed };
  });
  const ratios = RATIOS.flatMap((name): readonly GateResult[] => {
    const bound = gates[name];
    if (bound === undefined) return [];
    const before = ended.map(({ recorded }) => MEASURES[name](recorded));
    const actual = ratioOf(
      before,
      ended.map(({ run }) => MEASURES[name](run)),
    );
    // In memory, a model call takes no time on the clock of the run.
    const isTimeless =
      name === 'latency' && ended.length > 0 && before.every((recorded) => recorded === 0);
    return [isTimeless ? { name, bound, actual, passed: true } : atMost(name, bound, actual)];
  });
  return [
    atMost('errors', 0, all.length === 0 ? null : errors),
    atMost('diverged', gates.diverged ?? 0, diverged),
    ...(gates.replayed === undefined
      ? []
      : [atMost('replayed', gates.replayed, replayedShare(cases))]),
    ...scored,
    ...ratios,
  ];
}

/** Returns the share of the recordings that a replay does not reproduce; null if none could be read. */
function replayedShare(cases: readonly Measured[]): number | null {
  const read = cases.filter(({ recorded }) => recorded !== null);
  const same = read.filter(({ replayed }) => replayed?.divergence === null).length;
  return read.length === 0 ? null : 1 - same / read.length;
}

const MEASURES: Readonly<Record<(typeof RATIOS)[number], (run: MeasuredRun) => number | null>> = {
  tokens: ({ usage }) => usage.inputTokens + usage.outputTokens,
  cost: ({ usage }) => usage.costUsd,
  latency: ({ latencyMs }) => latencyMs,
};

/** Returns how many times as large the second sum is; null if a value is unknown or the first is 0. */
function ratioOf(
  before: readonly (number | null)[],
  after: readonly (number | null)[],
): number | null {
  const [one, other] = [before, after].map((all) => all.filter((each) => each !== null));
  if (one === undefined || other === undefined) return null;
  if (one.length < before.length || other.length < after.length) return null;
  return sumOf(one) === 0 ? null : sumOf(other) / sumOf(one);
}

/** The mean of ten scores of 0.7 is not exactly 0.7. */
const ROUNDING = 1e-9;

function atMost(name: string, bound: number, actual: number | null): GateResult {
  const passed = actual !== null && actual <= bound + ROUNDING * Math.max(1, bound);
  return { name, bound, actual, passed };
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}
