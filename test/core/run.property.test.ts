import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { acceptMessage } from '../../src/core/run/ask.js';
import { countOverflow } from '../../src/core/run/carry.js';
import { type Interruption, inTurn } from '../../src/core/state/turn.js';
import type { Ask } from '../../src/core/input/inbox.js';
import { apply, runLoop, type Run } from '../../src/core/interpret/loop.js';
import type { Message } from '../../src/core/transcript/messages.js';
import { sha256Hex } from '../../src/core/text/json.js';
import { parseCarriedState, STATE_VERSION } from '../../src/core/segments/migrations.js';
import { nextAction } from '../../src/core/run/next-action.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import { initialState, type FinishedTurn } from '../../src/core/state/state.js';
import {
  chain,
  FIRST_LINK,
  promptLength,
  toPromptMessage,
} from '../../src/core/transcript/transcript.js';
import { callReply, config, textReply, TOOLS, toolDefinition, SHORT } from '../support/scripts.js';
import { effectsOf } from '../support/turn.js';
import type { ModelEnd, World } from '../support/world.js';

/** What people do while work is in flight. */
type Deed =
  | {
      readonly type: 'ask';
      readonly steer: boolean;
      readonly pin: boolean;
      readonly again: boolean;
    }
  | { readonly type: 'pause' | 'resume' | 'cancelTurn' | 'raise' };

const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('ask' as const),
      steer: fc.boolean(),
      pin: fc.boolean(),
      again: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constantFrom('pause', 'resume', 'cancelTurn', 'raise') }),
  },
);
const replies: fc.Arbitrary<ModelEnd> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .array(fc.constantFrom('look', 'put', 'pay', 'nap', 'done'), { minLength: 1, maxLength: 3 })
      .map((names): ModelEnd => ({
        type: 'replied',
        reply: callReply(
          ...names.map((name) => [name, name === 'nap' ? { seconds: 5 } : {}] as const),
        ),
      })),
  },
  { weight: 3, arbitrary: fc.constant<ModelEnd>({ type: 'replied', reply: textReply('answer') }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<ModelEnd>(
      { type: 'failed', reason: 'error', message: 'x' },
      { type: 'failed', reason: 'context_too_long', message: 'too long' },
      { type: 'replied', reply: textReply('', 'refused') },
    ),
  },
);

const scenario = fc.record({
  deeds: fc.array(fc.array(deed, { maxLength: 3 }), { minLength: 1, maxLength: 30 }),
  replies: fc.array(replies, { maxLength: 40 }),
  segmentSteps: fc.integer({ min: 1, max: 6 }),
  window: fc.constantFrom(250, 600, 100_000),
  toolCalls: fc.constantFrom('parallel' as const, 'sequential' as const),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

interface Played {
  readonly run: Run;
  readonly outcome: Outcome;
  readonly accepted: ReadonlyMap<string, number>;
  readonly messages: readonly Message[];
  readonly turns: readonly FinishedTurn[];
  readonly segments: number;
}

/** Plays a whole open run. Each new segment gets its state as JSON, and older messages go to a store. */
async function play(given: Scenario): Promise<Played> {
  const tools = [...TOOLS, toolDefinition('nap', 'read', { repeat: 'allow', kind: 'wait' })];
  const definition = { tools, toolCalls: given.toolCalls, limits: { steps: 6 } };
  const runConfig = {
    ...config(definition),
    window: given.window,
    segment: { steps: given.segmentSteps, bytes: 1e9 },
  };
  const run: Run = { state: initialState(runConfig, { open: true }) };
  const blobs = new Map<string, readonly Message[]>();
  const accepted = new Map<string, number>();
  const seen = new Map<number, Message>();
  const turns: FinishedTurn[] = [];
  const [deeds, script] = [[...given.deeds], [...given.replies]];
  const counts = { serial: 0, segments: 1 };
  let broken: Interruption | null = null;

  const recordMessages = (): void => {
    for (const message of run.state.transcript.messages) seen.set(message.n, message);
  };
  const say = (mode: Ask['mode'], { pin, again }: { pin: boolean; again: boolean }): void => {
    const id = again && counts.serial > 0 ? `m${counts.serial}` : `m${(counts.serial += 1)}`;
    const ask = { message: `text of ${id}`, id, ...(mode && { mode }), pin };
    const { receipt, event } = acceptMessage(run.state, ask, id);
    expect(receipt.turn).toBe(accepted.get(id) ?? receipt.turn);
    accepted.set(id, receipt.turn);
    if (event !== null) apply(run, event);
  };
  const disturb = (): void => {
    for (const what of deeds.shift() ?? []) {
      if (what.type === 'ask') say(what.steer ? 'steer' : 'queue', what);
      else if (what.type === 'raise') apply(run, { type: 'limits-set', limits: { steps: 9 } });
      else if (what.type !== 'cancelTurn') {
        apply(run, { type: 'pause-changed', paused: what.type === 'pause' });
      } else if (inTurn(run.state)) broken = 'cancelTurn';
    }
  };
  const interruption = (): Interruption | null => {
    const by = broken;
    broken = null;
    return by;
  };
  const promptNow = (): readonly Message[] => {
    const { chunks, messages } = run.state.transcript;
    return [...chunks.flatMap(({ blob }) => blobs.get(blob.sha256) ?? []), ...messages];
  };
  const check = (): void => {
    recordMessages();
    const prompt = promptNow();
    expect(prompt).toHaveLength(promptLength(run.state.transcript));
    const head = prompt.reduce(
      (link, message) => chain(link, toPromptMessage(message)),
      FIRST_LINK,
    );
    expect(run.state.transcript.head).toBe(head);
    expectWhole(prompt);
    const shown = new Set(prompt.map(({ n }) => n));
    for (const message of seen.values()) {
      const isKeptVerbatim = message.role === 'user' && !message.origin;
      const now = inTurn(run.state) && message.turn === run.state.turn.number;
      if (isKeptVerbatim && (message.pinned || now)) expect(shown).toContain(message.n);
    }
  };

  const world: World = {
    segment: () => SHORT,
    callModel: async (_state, { cut }) => {
      check();
      disturb();
      const by = interruption();
      if (by !== null) return { type: 'interrupted', by };
      if (cut !== undefined) return { type: 'replied', reply: textReply('so far') };
      return script.shift() ?? { type: 'replied', reply: textReply('answer') };
    },
    runCalls: async (_state, calls, finished) => {
      for (const { id } of calls) {
        disturb();
        const by = interruption();
        if (by !== null) return by;
        if (run.state.paused) return null;
        finished(id, { ok: true, text: `r${(counts.serial += 1)} `.repeat(9) });
      }
      return null;
    },
    awaitTime: async () => {
      disturb();
      return interruption();
    },
    awaitChange: async ({ type }) => {
      disturb();
      if (interruption() !== null && inTurn(run.state)) return 'cancelTurn';
      if (nextAction(run.state, SHORT).type === type && deeds.length === 0) {
        apply(run, { type: 'pause-changed', paused: false });
        apply(run, { type: 'end-requested', by: 'closed' });
      }
      return null;
    },
    continueAsNew: async () => {
      recordMessages();
      const count = countOverflow(run.state, 500);
      const sha256 = sha256Hex(`blob ${blobs.size}`);
      if (count > 0) blobs.set(sha256, run.state.transcript.messages.slice(0, count));
      const chunk = count === 0 ? null : { blob: { sha256, bytes: 1 }, count };
      const archived = run.state.transcript.next;
      apply(run, { type: 'messages-archived', archived, chunk });
      apply(run, { type: 'segment-begun' });
      const carried = JSON.stringify({ schema: STATE_VERSION, state: run.state, shown: '' });
      const read = parseCarriedState(JSON.parse(carried));
      if (!('carried' in read)) throw new Error(read.problem);
      run.state = read.carried.state;
      counts.segments += 1;
    },
    observe: ({ turn }, action) => {
      if (action.type === 'record-turn') {
        turns.push({ turn: turn.number, outcome: action.outcome });
      }
      recordMessages();
    },
  };
  say('queue', { pin: false, again: false });
  const outcome = await runLoop(run, effectsOf(run, world));
  check();
  const messages = [...seen.values()].toSorted((one, other) => one.n - other.n);
  return { run, outcome, accepted, messages, turns, segments: counts.segments };
}

/** Checks that each call has one result, in order, right after its message, and that nothing else has one. */
function expectWhole(prompt: readonly Message[]): void {
  const open: string[] = [];
  for (const message of prompt) {
    if (message.role === 'tool') expect(open.shift()).toBe(message.callId);
    else expect(open).toEqual([]);
    if (message.role === 'assistant') open.push(...(message.calls ?? []).map(({ id }) => id));
  }
  expect(open).toEqual([]);
}

const byText = (one: string, other: string): number => one.localeCompare(other);

describe('an open run, whatever people do, and wherever its segments end', () => {
  // Playing is what takes time: all is checked of the same plays.
  test('takes each message once, in its turn, gives each turn one outcome, and counts the run as the sum of its turns', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const played = await play(given);
        expectOnceInTurn(played);
        expectSums(played);
      }),
      { numRuns: 400 },
    );
  });

  test('counts no fewer tokens than none if the provider counted fewer than the estimate of what it refuses', async () => {
    const usage = { inputTokens: 10, outputTokens: 5, cachedTokens: 0 };
    const pay = { name: 'pay', arguments: '{}', digest: sha256Hex('{}') };
    const called = (...calls: readonly (typeof pay)[]): ModelEnd => ({
      type: 'replied',
      reply: { text: '', calls, finish: 'calls', usage },
    });
    const refused: ModelEnd = { type: 'replied', reply: { text: '', finish: 'refused', usage } };
    const ends = [called(pay), called(pay, pay, pay), refused];
    const limits = { segmentSteps: 1, window: 250, toolCalls: 'parallel' } as const;
    expectSums(await play({ deeds: [[]], replies: ends, ...limits }));
  });
});

function expectOnceInTurn({ accepted, messages, turns, outcome }: Played): void {
  const received = messages.filter((m) => m.role === 'user' && m.id !== undefined);
  expect(received.map((m) => (m.role === 'user' ? (m.id ?? '') : '')).toSorted(byText)).toEqual(
    [...accepted.keys()].toSorted(byText),
  );
  for (const message of received) {
    const id = message.role === 'user' ? (message.id ?? '') : '';
    expect(message.turn).toBe(accepted.get(id));
  }
  expect(messages.map(({ n }) => n)).toEqual(messages.map((_, index) => index));
  const numbers = turns.map(({ turn }) => turn);
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  expect(new Set(numbers)).toEqual(new Set(accepted.values()));
  expect(outcome).toMatchObject({ status: 'completed', reason: 'closed' });
}

/** Each turn counts from zero. */
function expectSums({ turns, outcome, segments, run }: Played): void {
  const sum = (pick: (one: Outcome) => number): number =>
    turns.reduce((total, { outcome: one }) => total + pick(one), 0);
  expect(outcome.steps).toBe(sum(({ steps }) => steps));
  expect(outcome.toolCalls).toBe(sum(({ toolCalls }) => toolCalls));
  for (const { outcome: one } of turns) expect(one.steps).toBeLessThanOrEqual(9);
  expect(run.state.segments).toBe(segments);
  expect(outcome.usage.inputTokens).toBe(sum(({ usage }) => usage.inputTokens));
}
