import { describe, expect, test } from 'vitest';
import { findTool } from '../../src/core/calls/batch.js';
import type { Fact } from '../../src/core/run/events.js';
import { isFollowResult, isReply } from '../../src/core/guards/recorded.js';
import { parseProblem } from '../../src/core/interpret/block.js';
import type { Outcome, Usage } from '../../src/core/transcript/outcome.js';
import type { Message, ToolCall } from '../../src/core/transcript/messages.js';
import { PRICE } from '../support/sim/agent.js';
import { checkRuns } from '../support/sim/check.js';
import { getOpenBatch } from '../../src/core/state/turn.js';
import { anyInFlight, isUndo } from '../../src/core/state/work.js';

/** The cost of a fact, by the provider's rules: cached tokens are part of the input. */
function costOf(fact: Fact): Pick<Usage, 'inputTokens' | 'cachedTokens' | 'costUsd'> | null {
  if (fact.type === 'child-ended') return fact.outcome?.usage ?? null;
  if (fact.type !== 'completed') return null;
  if (fact.task.activity === 'followRun') {
    const { result } = fact;
    return isFollowResult(result) && result.type === 'ended' ? result.outcome.usage : null;
  }
  if (fact.task.activity !== 'callModel' || !isReply(fact.result)) return null;
  const { inputTokens, cachedTokens, outputTokens } = fact.result.usage;
  const input = (inputTokens - cachedTokens) * PRICE.input + cachedTokens * PRICE.cachedInput;
  const costUsd = (input + outputTokens * PRICE.output) / 1e6;
  return { inputTokens, cachedTokens, costUsd };
}

/** Checks that each call has one result, in order, right after its message. */
function expectWhole(messages: readonly Message[]): void {
  const open: string[] = [];
  for (const message of messages) {
    if (message.role === 'tool') expect(open.shift()).toBe(message.callId);
    else expect(open).toEqual([]);
    if (message.role === 'assistant') open.push(...(message.calls ?? []).map(({ id }) => id));
  }
  expect(open).toEqual([]);
}

describe('a simulated run', () => {
  test('pays for each reply and each called agent once, and for cached tokens less', async () => {
    await checkRuns(({ last, log }) => {
      const costs = log.flat().flatMap(({ fact }) => costOf(fact) ?? []);
      const sum = (pick: (cost: (typeof costs)[number]) => number): number =>
        costs.reduce((total, cost) => total + pick(cost), 0);
      const { usage } = last.total;
      expect(usage.inputTokens).toBe(sum(({ inputTokens }) => inputTokens));
      expect(usage.cachedTokens).toBe(sum(({ cachedTokens }) => cachedTokens));
      if (last.config.price === null)
        expect(usage.costUsd).toBe(costs.length > 0 ? null : usage.costUsd);
      else
        expect(usage.costUsd).toBeCloseTo(
          sum(({ costUsd }) => costUsd ?? 0),
          9,
        );
    });
  });

  test('counts the run as the sum of its turns, which are numbered without a gap', async () => {
    await checkRuns(({ last, turns, outcome }) => {
      expect(turns.map(({ turn }) => turn)).toEqual(turns.map((_, index) => index + 1));
      const sum = (pick: (one: Outcome) => number): number =>
        turns.reduce((total, turn) => total + pick(turn.outcome), 0);
      expect(last.total.steps).toBe(sum(({ steps }) => steps));
      expect(last.total.toolCalls).toBe(sum(({ toolCalls }) => toolCalls));
      expect(last.total.usage.outputTokens).toBe(sum(({ usage }) => usage.outputTokens));
      if (last.open && outcome !== null) expect(outcome.usage).toEqual(last.total.usage);
      expect(last.recent).toEqual(turns.slice(-10));
    });
  });

  test('gives each call one result, and leaves nothing in flight', async () => {
    await checkRuns(({ last }) => {
      expectWhole(last.transcript.messages);
      // Undoing may still wait for a decision when the run ends.
      expect(last.work.filter((work) => !isUndo(work))).toEqual([]);
      expect(anyInFlight(last)).toBe(false);
      expect(getOpenBatch(last)).toBeNull();
    });
  });

  test('puts each accepted message once into the turn that its receipt names', async () => {
    const seen = new Map<number, Message>();
    await checkRuns(
      ({ last }) => {
        for (const message of last.transcript.messages) seen.set(message.n, message);
        const taken = [...seen.values()].flatMap((message) =>
          message.role === 'user' && message.id !== undefined ? [[message.id, message.turn]] : [],
        );
        const waiting = last.inbox.waiting.map(({ id, turn }) => [id, turn]);
        const byId = (one: unknown, other: unknown): number =>
          String(one).localeCompare(String(other));
        expect([...taken, ...waiting].toSorted(byId)).toEqual(
          last.inbox.seen.map(([id, turn]) => [id, turn]).toSorted(byId),
        );
      },
      () => {
        seen.clear();
        return {
          noted: ({ run: { state } }) => {
            for (const message of state.transcript.messages) seen.set(message.n, message);
          },
        };
      },
    );
  });

  test('begins nothing while it is paused or interrupted', async () => {
    const begun: string[] = [];
    await checkRuns(
      () => {
        expect(begun).toEqual([]);
      },
      () => ({
        noted: ({ run: { state } }, fact) => {
          if (fact.type !== 'scheduled') return;
          const { activity, input } = fact.task;
          const isPaid = ['callModel', 'runTool', 'retrieveDocuments'].includes(activity);
          if (isPaid && state.paused) begun.push(`${activity} ${JSON.stringify(input)} paused`);
          const isOff = state.ending === 'cancelled' || state.turn.interruption !== undefined;
          const isAgent = activity === 'agent' || activity === 'followRun';
          if (isOff && !isAgent) begun.push(`${activity} interrupted`);
        },
      }),
    );
  });

  test('executes a call of a `once` tool again only if it cannot have taken effect', async () => {
    const doubtful = new Set<string>();
    const repeated: string[] = [];
    await checkRuns(
      () => {
        expect(repeated).toEqual([]);
      },
      () => {
        doubtful.clear();
        repeated.length = 0;
        return {
          noted: ({ run: { state } }, fact) => {
            const isOnce = (name: string): boolean => findTool(state, name)?.effect === 'once';
            repeated.push(...(inDoubt(fact, doubtful, isOnce) ?? []));
            // A person says that the call did not happen.
            for (const { name, retried, phase } of state.work) {
              if (retried && phase === 'waiting') doubtful.delete(name);
            }
          },
        };
      },
    );
  });
});

/**
 * Tracks which `once` calls may have taken effect. Returns one that still begins again, or null.
 */
function inDoubt(
  fact: Fact,
  doubtful: Set<string>,
  isOnce: (name: string) => boolean,
): readonly string[] | null {
  if (!('task' in fact)) return null;
  const { activity, input } = fact.task;
  const { call, find } = input as { call?: ToolCall; find?: true };
  if (typeof call !== 'object' || !isOnce(call.name)) return null;
  const { id: name } = call;
  if (activity === 'runFunction' && fact.type === 'completed') {
    const { happened } = (fact.result ?? {}) as { happened?: unknown };
    if (happened === false) doubtful.delete(name);
  }
  if (activity !== 'runTool' || find) return null;
  if (fact.type === 'scheduled') {
    if (doubtful.has(name)) return [name];
    doubtful.add(name);
  } else if (fact.type === 'failed' && parseProblem(fact.failure.details)?.type === 'blocked') {
    doubtful.delete(name);
  } else if (fact.type === 'completed') {
    const { ok } = (fact.result ?? {}) as { ok?: unknown };
    if (ok === 'not_started') doubtful.delete(name);
  }
  return null;
}
