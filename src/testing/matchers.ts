import { listInLine } from '../core/state/summaries.js';
import { InputError } from '../core/errors.js';
import { failureOf as callFailure } from '../core/transcript/call-result.js';
import { isObject } from '../core/text/json.js';
import { headOf, show } from '../core/text/text.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { likelyMeant } from '../validation/near-names.js';
import { assertOptionNames } from '../validation/option-names.js';
import { callMisfit, endMisfit, isReason, requestMisfit } from './known-names.js';

/** What the matchers read of a run: that of `runInMemory`, of `rerun`, or one put together from a client. */
export interface CheckedRun {
  /** Null if the run has not ended. */
  readonly outcome: Outcome<unknown> | null;
  readonly transcript: { readonly messages: readonly CheckedMessage[] };
  /** The tool calls that were executed, in order. */
  readonly effects: readonly { readonly tool: string; readonly input: unknown }[];
  /** The requests to people, in order. */
  readonly requests: readonly CheckedRequest[];
  /** What the run left over of its script, in words; absent if it had none. */
  readonly unused?: readonly string[];
  /** What the script did not have for the run, in words; absent if it had everything. */
  readonly missing?: readonly string[];
}

/** What `toEndAs` and `toCost` read: a run, the outcome alone, as `client.run` returns it, or an object that has it. */
type CheckedEnd = Outcome<unknown> | Pick<CheckedRun, 'outcome'>;

/** A message as the matchers read it. */
export interface CheckedMessage {
  readonly role: string;
  readonly text: string;
  /** The calls that a model's reply makes. */
  readonly calls?: readonly {
    readonly id: string;
    readonly name: string;
    readonly arguments: string;
  }[];
  /** The call whose result this is. */
  readonly callId?: string;
  /** False: the call failed, or was not executed. */
  readonly ok?: boolean;
}

/** A request as the matchers read it. */
export interface CheckedRequest {
  readonly kind: string;
  /** Of a request about a call. */
  readonly tool?: string;
  /** The arguments of the call, as JSON. */
  readonly arguments?: string;
}

/** The most that a run may have cost; what is absent may be any amount. */
export interface CostBounds {
  /** Replies of the model that were steps. Default: any number. */
  readonly steps?: number;
  /** Executed calls. Default: any number. */
  readonly toolCalls?: number;
  /** Input and output tokens together. Default: any number. */
  readonly tokens?: number;
  /** US dollars; an unknown cost is more than any bound. Default: any amount. */
  readonly costUsd?: number;
}

/** The tools that vitest gives to a matcher. */
interface MatcherContext {
  readonly isNot: boolean;
  readonly equals: (one: unknown, other: unknown, testers?: never[]) => boolean;
  readonly utils: {
    readonly subsetEquality: unknown;
    readonly diff: (expected: unknown, received: unknown) => string | null | undefined;
    readonly printExpected: (value: unknown) => string;
    readonly printReceived: (value: unknown) => string;
  };
}

/** What a matcher returns to vitest. */
interface MatcherResult {
  readonly pass: boolean;
  readonly message: () => string;
}

/** The most characters of the reason why a call failed. */
const REASON = 200;

const NOT_ENDED = 'the run has not ended: it has no outcome';

/** The matchers of `perdure/vitest`, for `expect.extend`. */
export const matchers = {
  /** The run has ended so: a status, a reason, or some fields of the outcome. */
  toEndAs(
    this: MatcherContext,
    run: CheckedEnd,
    expected: string | Readonly<Record<string, unknown>>,
  ): MatcherResult {
    const outcome = checkedEnd(run);
    if (outcome === null) return { pass: this.isNot, message: () => NOT_ENDED };
    const pass =
      typeof expected === 'string'
        ? outcome.status === expected || outcome.reason === expected
        : isPart(this, outcome, expected);
    const misfit = misfitLine('toEndAs', endMisfit(expected), this.isNot && !pass);
    const told = typeof expected === 'string' ? endOf(expected) : expected;
    const fields = Object.keys(told);
    return {
      pass,
      message: () =>
        this.isNot
          ? [
              `the run ended as ${this.utils.printReceived(expected)}, which it should not`,
              ...failureOf(outcome),
            ].join('\n')
          : [
              `the run did not end as expected: it is ${outcome.status} (${outcome.reason})`,
              ...misfit,
              ...(outcome.error === undefined ? [] : [outcome.error]),
              this.utils.diff(told, pick(outcome, fields)) ?? '',
            ].join('\n'),
    };
  },

  /** A tool was executed, with at least these fields in its input; `times`: exactly so often. */
  toHaveCalled(
    this: MatcherContext,
    run: CheckedRun,
    tool: string,
    input: Readonly<Record<string, unknown>> = {},
    options: { readonly times?: number } = {},
  ): MatcherResult {
    assertOptionNames<typeof options>(options, { times: true }, 'toHaveCalled');
    const { times } = options;
    const { effects, outcome, transcript } = checked(run, 'transcript');
    const found = effects.filter((each) => each.tool === tool && isPart(this, each.input, input));
    const pass = times === undefined ? found.length > 0 : found.length === times;
    const lines = effects.map((each) => `  ${each.tool} ${JSON.stringify(each.input)}`);
    const wanted = Object.keys(input).length === 0 ? tool : `${tool} ${JSON.stringify(input)}`;
    const holds = this.isNot ? !pass : pass && times === 0;
    const misfit = misfitLine('toHaveCalled', callMisfit(run, tool, input), holds);
    const often = times === undefined ? '' : times === 1 ? ' once' : ` ${times} times`;
    return {
      pass: pass || provesNothing(this, run),
      message: () =>
        [
          `expected the run ${this.isNot ? 'not ' : ''}to call ${wanted}${often}; calls like this: ${found.length}`,
          ...misfit,
          lines.length === 0 ? 'it executed no call' : `it executed:\n${lines.join('\n')}`,
          ...failedCalls(transcript.messages),
          ...failureOf(outcome),
        ].join('\n'),
    };
  },

  /** A person was asked: by the name of a tool or the kind of a request, with at least these arguments. */
  toHaveAsked(
    this: MatcherContext,
    run: CheckedRun,
    about: string,
    input: Readonly<Record<string, unknown>> = {},
  ): MatcherResult {
    const { requests, outcome } = checked(run, 'requests');
    const found = requests.filter(
      (each) =>
        (each.tool === about || each.kind === about) && isPart(this, argumentsOf(each), input),
    );
    const holds = this.isNot && found.length === 0;
    const misfit = misfitLine('toHaveAsked', requestMisfit(run, about, input), holds);
    const lines = requests.map(
      (each) =>
        `  ${each.kind}${each.tool === undefined ? '' : ` of ${each.tool}`} ${each.arguments ?? ''}`,
    );
    return {
      pass: found.length > 0 || provesNothing(this, run),
      message: () =>
        [
          `expected the run ${this.isNot ? 'not ' : ''}to ask about ${about} ${JSON.stringify(input)}`,
          ...misfit,
          lines.length === 0 ? 'it asked for no decision' : `it asked:\n${lines.join('\n')}`,
          ...failureOf(outcome),
        ].join('\n'),
    };
  },

  /** The agent has said this: a part of one of its messages, or a pattern that one matches. */
  toHaveSaid(this: MatcherContext, run: CheckedRun, expected: string | RegExp): MatcherResult {
    const { transcript, outcome } = checked(run, 'transcript');
    const said = transcript.messages
      .filter(({ role, text }) => role === 'assistant' && text !== '')
      .map(({ text }) => text);
    const isSaid = (text: string): boolean =>
      typeof expected === 'string' ? text.includes(expected) : text.search(expected) >= 0;
    return {
      pass: said.some(isSaid) || provesNothing(this, run),
      message: () =>
        [
          `expected the run ${this.isNot ? 'not ' : ''}to say ${this.utils.printExpected(expected)}`,
          said.length === 0
            ? 'it said nothing'
            : `it said:\n${said.map((text) => `  ${JSON.stringify(text)}`).join('\n')}`,
          ...failureOf(outcome),
        ].join('\n'),
    };
  },

  /** The run has used all replies, answers to requests, and messages of its script, and no more. */
  toUseWholeScript(this: MatcherContext, run: CheckedRun): MatcherResult {
    const { unused = [], missing = [], outcome } = checked(run);
    return {
      pass: (unused.length === 0 && missing.length === 0) || provesNothing(this, run),
      message: () =>
        [
          ...(this.isNot
            ? ['the run has used its whole script, which it should not']
            : [
                ...listed('the run has left over:', unused),
                ...listed('the run needed more than its script has:', missing),
              ]),
          ...failureOf(outcome),
        ].join('\n'),
    };
  },

  /** The run has cost at most this. A bound in dollars fails if a price is unknown. */
  toCost(this: MatcherContext, run: CheckedEnd, bounds: CostBounds): MatcherResult {
    const outcome = checkedEnd(run);
    const unknown = Object.keys(bounds).find((name) => !BOUNDS.some((known) => known === name));
    if (unknown !== undefined) {
      const meant = likelyMeant(unknown, BOUNDS);
      const fix = meant === undefined ? '' : `; did you mean ${meant}?`;
      throw new InputError(`toCost: expected ${BOUNDS.join(', ')}, got ${show(unknown)}${fix}`);
    }
    if (outcome === null) return { pass: this.isNot, message: () => NOT_ENDED };
    const { steps, toolCalls, usage } = outcome;
    const spent = {
      steps,
      toolCalls,
      tokens: usage.inputTokens + usage.outputTokens,
      costUsd: usage.costUsd,
    };
    const lines = BOUNDS.flatMap((name) => {
      const [most, is] = [bounds[name], spent[name]];
      // An unknown price is neither within a bound nor above it.
      const isAbove = most !== undefined && (is === null ? !this.isNot : is > most);
      return isAbove ? [`  ${name}: at most ${most}, got ${is ?? 'an unknown price'}`] : [];
    });
    return {
      pass: lines.length === 0 || provesNothing(this, { outcome }),
      message: () =>
        [
          this.isNot
            ? `expected the run to cost more than ${JSON.stringify(bounds)}; it cost ${JSON.stringify(spent)}`
            : `the run cost more than expected:\n${lines.join('\n')}`,
          ...(this.isNot && bounds.costUsd !== undefined && spent.costUsd === null
            ? ['its price is unknown']
            : []),
          ...failureOf(outcome),
        ].join('\n'),
    };
  },
};

const BOUNDS = ['steps', 'toolCalls', 'tokens', 'costUsd'] as const;

/**
 * Returns the run. Throws an `InputError` for any other value, which would pass some matchers. `field`: what
 * the matcher needs beside the outcome and the calls.
 */
function checked(run: CheckedRun, field?: 'transcript' | 'requests'): CheckedRun {
  const needed = ['outcome', 'effects', ...(field === undefined ? [] : [field])];
  const value: unknown = run;
  const lacking = isObject(value) ? needed.filter((name) => !(name in value)) : needed;
  if (lacking.length === 0) return run;
  const hasOutcome = isOutcome(value) || (isObject(value) && isOutcome(value['outcome']));
  const missing = lacking.filter((name) => name !== 'outcome');
  throw notARun(
    value,
    hasOutcome
      ? `; it lacks ${missing.join(' and ')}, which the outcome does not have: for a run on a server, give what rerun(await recordRun(client, run), { agent }) returns`
      : '; or give an object with its fields',
  );
}

/** Returns the outcome of a run, or the outcome that was given. Throws an `InputError` for any other value. */
function checkedEnd(run: CheckedEnd): CheckedRun['outcome'] {
  if (isOutcome(run)) return run;
  const value: unknown = run;
  const outcome = isObject(value) ? value['outcome'] : undefined;
  if (outcome === null || isOutcome(outcome)) return outcome;
  throw notARun(value, '; or give the outcome of client.run or client.result');
}

function isOutcome(value: unknown): value is Outcome<unknown> {
  return (
    isObject(value) &&
    typeof value['reason'] === 'string' &&
    isObject(value['usage']) &&
    'answer' in value
  );
}

function notARun(value: unknown, fix: string): InputError {
  return new InputError(
    value instanceof Promise
      ? 'expect: expected a run, got a promise; await it'
      : `expect: expected a run of runInMemory or rerun, got ${show(value)}${fix}`,
  );
}

/** Says which calls failed or were not executed, since one of them may be the expected one. */
function failedCalls(messages: readonly CheckedMessage[]): readonly string[] {
  const calls = new Map(
    messages.flatMap(({ calls: made = [] }) => made).map((one) => [one.id, one]),
  );
  const lines = messages.flatMap(({ callId, ok, text }) => {
    const call = callId === undefined ? undefined : calls.get(callId);
    const failure =
      callId === undefined ? null : callFailure({ text, ...(ok !== undefined && { ok }) });
    if (call === undefined || failure === null) return [];
    return [
      `  ${call.name} ${call.arguments}: ${failure.type}: ${headOf(listInLine(failure.message).replaceAll('\n', ' '), REASON)}`,
    ];
  });
  return lines.length === 0 ? [] : [`failed or not executed:\n${lines.join('\n')}`];
}

/** Says how a run has failed, since this explains what it did not do; empty if it has not. */
function failureOf(outcome: CheckedRun['outcome']): readonly string[] {
  if (outcome?.status !== 'failed') return [];
  const { reason, error } = outcome;
  return [`the run failed (${reason})${error === undefined ? '' : `: ${error}`}`];
}

/**
 * Whether a matcher is negated for a run that has failed by its input, before the agent could do
 * anything: what it did not do says nothing about the agent.
 */
function provesNothing(
  { isNot }: MatcherContext,
  { outcome, effects = [] }: Pick<CheckedRun, 'outcome'> & Partial<Pick<CheckedRun, 'effects'>>,
): boolean {
  if (!isNot || effects.length > 0) return false;
  return outcome?.status === 'failed' && outcome.reason === 'input' && outcome.steps === 0;
}

function listed(what: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [what, ...lines.map((one) => `  ${one}`)];
}

/**
 * Returns a line about names that no run has. Throws an `InputError` if the matcher holds because of them:
 * it would prove nothing.
 */
function misfitLine(matcher: string, misfit: string | null, holds: boolean): readonly string[] {
  if (misfit === null) return [];
  if (holds) throw new InputError(`${matcher}: ${misfit}`);
  return [misfit];
}

function isPart({ equals, utils }: MatcherContext, actual: unknown, part: unknown): boolean {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- vitest does not type its testers
  return equals(actual, part, [utils.subsetEquality] as never[]);
}

function argumentsOf({ arguments: json }: CheckedRequest): unknown {
  try {
    return json === undefined ? {} : JSON.parse(json);
  } catch {
    return {};
  }
}

/** Returns the field of an outcome that a text is about. */
function endOf(text: string): Readonly<Record<string, unknown>> {
  return isReason(text) ? { reason: text } : { status: text };
}

function pick(value: object, names: readonly string[]): object {
  return Object.fromEntries(Object.entries(value).filter(([name]) => names.includes(name)));
}
