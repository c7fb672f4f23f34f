import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { acceptMessage } from '../../src/core/run/ask.js';
import { countOverflow } from '../../src/core/run/carry.js';
import type { AgentDefinition, Limits } from '../../src/core/definition/definition.js';
import { type Interruption, inTurn } from '../../src/core/state/turn.js';
import { apply, runLoop, type Run } from '../../src/core/interpret/loop.js';
import type { Message, PromptMessage } from '../../src/core/transcript/messages.js';
import { sha256Hex } from '../../src/core/text/json.js';
import { parseCarriedState, STATE_VERSION } from '../../src/core/segments/migrations.js';
import { nextAction } from '../../src/core/run/next-action.js';
import type { Outcome, RecordedReply } from '../../src/core/transcript/outcome.js';
import { initialState } from '../../src/core/state/state.js';
import {
  chain,
  FIRST_LINK,
  promptLength,
  toPromptMessage,
} from '../../src/core/transcript/transcript.js';
import { callReply, config, textReply, SHORT } from '../support/scripts.js';
import { effectsOf } from '../support/turn.js';
import type { ModelEnd, World } from '../support/world.js';

/**
 * An answer as the activity records it: it matches the schema, or has the problem for the model.
 */
function answers(text: string, isValid: boolean): RecordedReply {
  const parsed = isValid
    ? ({ ok: true, output: { read: text } } as const)
    : ({ ok: false, problem: `${text}: not valid`, output: { raw: text } } as const);
  return { ...textReply(text), parsed };
}

type Deed =
  | { readonly type: 'ask'; readonly steer: boolean; readonly pin: boolean }
  | { readonly type: 'pause' | 'resume' | 'cancelTurn' | 'wallMs' | 'cancel' | 'raise' };

const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant('ask' as const),
      steer: fc.boolean(),
      pin: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constantFrom('pause', 'resume', 'cancelTurn', 'wallMs') }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('cancel', 'raise') }) },
);

/** The behaviors of a model by name. Its texts are numbered in the order of the replies. */
const deeper = ['valid', 'call', 'truncated', 'refused', 'error', 'too long'] as const;
const word = fc.oneof(
  { weight: 5, arbitrary: fc.constant('invalid' as const) },
  { weight: 4, arbitrary: fc.constantFrom(...deeper) },
);
type Word = typeof word extends fc.Arbitrary<infer T> ? T : never;

const scenario = fc.record({
  deeds: fc.array(fc.array(deed, { maxLength: 2 }), { minLength: 1, maxLength: 30 }),
  words: fc.array(word, { maxLength: 40 }),
  segmentSteps: fc.integer({ min: 1, max: 4 }),
  window: fc.constantFrom(250, 600, 100_000),
  /** The maximum number of messages that the server accepts, whatever the declared window. */
  reads: fc.constantFrom(5, 9, Infinity),
  attempts: fc.constantFrom(undefined, 1, 2, 4),
  onInvalid: fc.constantFrom('fail' as const, 'best_effort' as const),
  onLimit: fc.constantFrom('answer' as const, 'compose' as const, 'fail' as const),
  limits: fc.constantFrom<Limits>(
    {},
    { steps: 2 },
    { tokens: 400 },
    { steps: 3, run: { tokens: 900 } },
    { costUsd: 0.000_4 },
  ),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

const PRICE = { input: 1, cachedInput: 0.5, output: 2 };
/** The cost of one scripted reply in USD. */
const CALL_USD = (10 * PRICE.input + 5 * PRICE.output) / 1e6;
const MAX_CALLS = 400;

interface Played {
  readonly run: Run;
  readonly outcome: Outcome;
  readonly turns: readonly Outcome[];
  /** All messages, including side branches. */
  readonly archived: readonly Message[];
  readonly replies: number;
}

/** Plays a whole open run under a contract, and checks the invariants before each action. */
async function play(given: Scenario): Promise<Played> {
  const { attempts, onInvalid, onLimit, limits } = given;
  const definition: Partial<AgentDefinition> = {
    output: { type: 'json', name: 'answer', schema: {} },
    ...(attempts !== undefined && { attempts }),
    onInvalid,
    onLimit,
    limits,
  };
  const runConfig = {
    ...config({ ...definition, price: PRICE }),
    window: given.window,
    segment: { steps: given.segmentSteps, bytes: 1e9 },
  };
  const run: Run = { state: { ...initialState(runConfig, { open: true }), archives: true } };
  const blobs = new Map<string, readonly Message[]>();
  const archived: Message[] = [];
  const turns: Outcome[] = [];
  const [deeds, words] = [[...given.deeds], [...given.words]];
  const counts = { asked: 0, replies: 0, calls: 0 };
  let broken: Interruption | null = null;
  let trunk: readonly PromptMessage[] = [];

  const say = (mode: 'steer' | 'queue', pin: boolean): void => {
    const id = `m${(counts.asked += 1)}`;
    const { event } = acceptMessage(run.state, { message: `text of ${id}`, id, mode, pin }, id);
    if (event !== null) apply(run, event);
  };
  const disturb = (): void => {
    for (const what of deeds.shift() ?? []) {
      if (what.type === 'ask') say(what.steer ? 'steer' : 'queue', what.pin);
      else if (what.type === 'raise') apply(run, { type: 'limits-set', limits: { steps: 9 } });
      else if (what.type === 'pause' || what.type === 'resume') {
        apply(run, { type: 'pause-changed', paused: what.type === 'pause' });
      } else if (what.type === 'cancel') {
        apply(run, { type: 'end-requested', by: 'cancelled' });
        broken = 'cancel';
      } else if (inTurn(run.state)) broken = what.type;
    }
  };
  const interruption = (): Interruption | null => {
    const by = broken;
    broken = null;
    return by;
  };
  /** Archives what leaves memory, including side branches, as a run does. */
  const archive = (): void => {
    const { archived: from, transcript } = run.state;
    const { messages, pruned = [], next } = transcript;
    const news = [...messages, ...pruned].filter(({ n }) => n >= from);
    archived.push(...news.toSorted((one, other) => one.n - other.n));
    apply(run, { type: 'messages-archived', archived: next, chunk: null });
  };
  const check = (): void => {
    const { transcript, turn } = run.state;
    const older = transcript.chunks.flatMap(({ blob }) => blobs.get(blob.sha256) ?? []);
    const prompt = [...older, ...transcript.messages];
    expect(prompt).toHaveLength(promptLength(transcript));
    const head = prompt.reduce(
      (link, message) => chain(link, toPromptMessage(message)),
      FIRST_LINK,
    );
    expect(transcript.head).toBe(head);
    expect(turn.refusedAnswers ?? 0).toBeLessThanOrEqual(attempts ?? 10);
    const side = prompt.filter((message) => message.role !== 'tool' && message.side);
    const canonical = prompt.filter((message) => !side.includes(message)).map(toPromptMessage);
    if (turn.phase.type === 'repairing') {
      // A branch only appends messages.
      expect(side).toEqual(transcript.messages.slice(turn.phase.branch.messages));
      expect(canonical).toEqual(trunk);
      expect(prompt.slice(0, canonical.length).map(toPromptMessage)).toEqual(trunk);
    } else expect(side).toEqual([]);
    trunk = canonical;
  };

  const replied = (reply: RecordedReply): ModelEnd => {
    counts.replies += 1;
    return { type: 'replied', reply };
  };
  const reaction = (what: Word): ModelEnd => {
    const text = `answer ${counts.calls}`;
    switch (what) {
      case 'valid':
        return replied(answers(text, true));
      case 'invalid':
        return replied(answers(text, false));
      case 'call':
        return replied(callReply(['put', { at: counts.calls }]));
      case 'truncated':
        return replied(textReply(text, 'length'));
      case 'refused':
        return replied(textReply(text, 'refused'));
      case 'error':
        return { type: 'failed', reason: 'error', message: 'x' };
      case 'too long':
        return { type: 'failed', reason: 'context_too_long', message: 'too long' };
    }
  };
  const world: World = {
    segment: () => SHORT,
    callModel: async (_state, { cut, closing }) => {
      counts.calls += 1;
      if (counts.calls > MAX_CALLS) throw new Error('the run never ends');
      disturb();
      const by = interruption();
      if (by !== null) return { type: 'interrupted', by };
      if (cut !== undefined) return replied(textReply('so far'));
      if (promptLength(run.state.transcript) > given.reads) return reaction('too long');
      return reaction(words.shift() ?? (closing ? 'invalid' : 'valid'));
    },
    runCalls: async (_state, calls, finished) => {
      disturb();
      const by = interruption();
      if (by !== null) return by;
      for (const { id } of calls) finished(id, { ok: true, text: 'done' });
      return null;
    },
    awaitTime: async () => interruption(),
    awaitChange: async ({ type }) => {
      disturb();
      const by = interruption();
      if (by !== null) return by;
      if (nextAction(run.state, SHORT).type === type && deeds.length === 0) {
        apply(run, { type: 'pause-changed', paused: false });
        apply(run, { type: 'end-requested', by: 'closed' });
      }
      return null;
    },
    continueAsNew: async () => {
      archive();
      const count = countOverflow(run.state, 300);
      const sha256 = sha256Hex(`blob ${blobs.size}`);
      if (count > 0) blobs.set(sha256, run.state.transcript.messages.slice(0, count));
      const chunk = count === 0 ? null : { blob: { sha256, bytes: 1 }, count };
      apply(run, { type: 'messages-archived', archived: run.state.archived, chunk });
      apply(run, { type: 'segment-begun' });
      const carried = JSON.stringify({ schema: STATE_VERSION, state: run.state, shown: '' });
      const read = parseCarriedState(JSON.parse(carried));
      if (!('carried' in read)) throw new Error(read.problem);
      run.state = read.carried.state;
    },
    archive: async () => {
      archive();
      return true;
    },
    observe: (_state, action) => {
      if (action.type === 'record-turn') turns.push(action.outcome);
      check();
    },
  };
  say('queue', false);
  const outcome = await runLoop(run, effectsOf(run, world));
  archive();
  return { run, outcome, turns, archived, replies: counts.replies };
}

describe('an open run whose answers have a contract', () => {
  // Playing is what takes time: all is checked of the same plays.
  test('ends with its own transcript, returns an accepted output or says why there is none, and pays for each attempt once', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const played = await play(given);
        expectOwnTranscript(played);
        expectAccepted(played, given);
        expectPaidOnce(played);
      }),
      { numRuns: 400 },
    );
  });
});

/** Whatever the side branches contain; pruned and summarized messages count as well. */
function expectOwnTranscript({ archived, run }: Played): void {
  expect(archived.map(({ n }) => n)).toEqual(archived.map((_, index) => index));
  expect(archived).toHaveLength(run.state.transcript.next);
}

function expectAccepted({ turns }: Played, { onInvalid }: Scenario): void {
  for (const { status, output, answer, issues } of turns) {
    const accepted = JSON.stringify(output) === JSON.stringify({ read: answer });
    if (status === 'completed' && issues === undefined) expect(accepted).toBe(true);
    else if (status === 'completed') expect(output).toEqual({ raw: answer });
    else if (issues !== undefined) expect(output).toEqual({ raw: expect.any(String) });
    else if (status === 'stopped') expect(output === null || accepted).toBe(true);
    else expect(output).toBeNull();
    if (issues !== undefined) expect(onInvalid).toBe('best_effort');
  }
}

/** In the turn and in the run. */
function expectPaidOnce({ outcome, turns, replies, run }: Played): void {
  const { usage } = run.state.total;
  expect(usage.inputTokens).toBe(10 * replies);
  expect(usage.costUsd).toBeCloseTo(replies * CALL_USD, 9);
  expect(outcome.usage).toEqual(usage);
  const paid = turns.reduce((sum, { usage: one }) => sum + one.inputTokens, 0);
  expect(paid).toBe(usage.inputTokens);
}
