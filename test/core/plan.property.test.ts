import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { GraphDefinition } from '../../src/core/definition/graph-definition.js';
import { isObject, parseJson, type JsonObject } from '../../src/core/text/json.js';
import { runLoop, type Run } from '../../src/core/interpret/loop.js';
import { actionOf } from '../../src/core/plan/plan-batch.js';
import { planValue } from '../../src/core/plan/plan.js';
import { reduce } from '../../src/core/run/reduce.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { getOutcome } from '../../src/core/state/turn.js';
import { EXECUTE, node } from '../support/graph-agent.js';
import { config, SHORT, toolDefinition } from '../support/scripts.js';
import { carry } from '../support/sim/play.js';
import { effectsOf } from '../support/turn.js';
import type { World } from '../support/world.js';

interface Action {
  /** Earlier actions that the arguments refer to, and others that only have to end first. */
  readonly refs: readonly number[];
  readonly after: readonly number[];
  readonly fails: boolean;
}

/** An action for each place, whose numbers are taken modulo the place: no cycle is possible. */
const actions: fc.Arbitrary<readonly Action[]> = fc
  .array(
    fc.record({
      refs: fc.array(fc.nat(50), { maxLength: 2 }),
      after: fc.array(fc.nat(50), { maxLength: 2 }),
      fails: fc.boolean(),
    }),
    { minLength: 1, maxLength: 20 },
  )
  .map((list) =>
    list.map(({ refs, after, fails }, index) => {
      const earlier = (numbers: readonly number[]): readonly number[] =>
        index === 0 ? [] : [...new Set(numbers.map((one) => one % index))];
      return { refs: earlier(refs), after: earlier(after), fails: fails && index % 3 === 0 };
    }),
  );

type Policy = 'skip' | 'null';

function planOf(list: readonly Action[]): JsonObject {
  return planValue({
    actions: list.map(({ refs, after }, index) => ({
      id: `a${index}`,
      tool: 'add',
      arguments: Object.fromEntries(
        refs.map((one) => [`r${one}`, { $ref: `a${one}`, path: 'value' }]),
      ),
      ...(after.length > 0 && { after: after.map((one) => `a${one}`) }),
    })),
    done: [],
    asks: false,
  });
}

/** The result of an action. A value of null: it has failed, or was not executed. */
interface End {
  readonly runs: boolean;
  readonly value: string | null;
}

/** The expected result of each action: executed one after another, in the order of the plan. */
function reference(list: readonly Action[], policy: Policy): ReadonlyMap<string, End> {
  const values: (string | null)[] = [];
  return new Map(
    list.map(({ refs, after, fails }, index): [string, End] => {
      const needed = [...refs, ...after];
      const isBehind = needed.some((one) => values[one] === null);
      // Every part of a failed result is null.
      const runs = policy === 'null' || !isBehind;
      const value = runs && !fails ? `v${index}(${refs.map((one) => values[one]).join()})` : null;
      values[index] = value;
      return [`a${index}`, { runs, value }];
    }),
  );
}

test.each<{ policy: Policy; isCut: boolean }>([
  { policy: 'skip', isCut: false },
  { policy: 'skip', isCut: true },
  { policy: 'null', isCut: false },
])(
  'any plan has the results that its order implies: $policy, a new segment after each call: $isCut',
  async ({ policy, isCut }) => {
    await fc.assert(
      fc.asyncProperty(actions, fc.infiniteStream(fc.nat(1_000)), async (list, random) => {
        const graph: GraphDefinition = {
          start: 'do',
          nodes: [
            node(
              'do',
              { ...EXECUTE, onFailedDependency: policy },
              { done: 'end', some_failed: 'end' },
            ),
          ],
          fields: ['plan', 'results'],
          initial: { plan: planOf(list) },
          perTurn: [],
        };
        const run: Run = { state: waiting(graph) };
        const executed: string[] = [];
        const expected = reference(list, policy);
        const ended = new Set([...expected].flatMap(([id, { runs }]) => (runs ? [] : [id])));
        const world: World = {
          callModel: () => Promise.reject(new Error('no model is expected')),
          continueAsNew: async () => {
            run.state = carry(reduce(run.state, { type: 'segment-begun' }));
          },
          // Any call that is ready may be the next to end.
          runCalls: async (_, calls, finished) => {
            const call = calls[(random.next().value ?? 0) % calls.length];
            if (call === undefined) return null;
            const id = actionOf(call);
            const index = Number(id.slice(1));
            const { refs = [], after = [], fails } = list[index] ?? { fails: false };
            const isEarly = [...refs, ...after].some((one) => !ended.has(`a${one}`));
            expect(isEarly).toBe(false);
            executed.push(id);
            ended.add(id);
            const given = parseJson(call.arguments);
            const parts = refs.map((one) => (isObject(given) ? given[`r${one}`] : undefined));
            const value = `v${index}(${parts.join()})`;
            finished(
              call.id,
              fails ? { ok: false, text: 'no' } : { ok: true, text: '', output: { value } },
            );
            return null;
          },
          ...(isCut && { segment: () => SHORT }),
        };
        await runLoop(run, effectsOf(run, world));
        expect(getOutcome(run.state)).toMatchObject({ status: 'completed' });
        expect(new Set(executed).size).toBe(executed.length);
        const { results } = run.state.graph?.values ?? {};
        const brought = Object.entries(isObject(results) ? results : {}).map(([id, result]) => {
          const value = isObject(result) && isObject(result['value']) ? result['value'] : {};
          return [id, value['value'] ?? null] as const;
        });
        expect(new Map(brought)).toEqual(
          new Map([...expected].map(([id, { value }]) => [id, value])),
        );
        expect([...executed].toSorted()).toEqual(
          [...expected].flatMap(([id, { runs }]) => (runs ? [id] : [])).toSorted(),
        );
      }),
      { seed: 20261123, numRuns: 300 },
    );
  },
);

/** A run of the graph whose first message waits. */
function waiting(graph: GraphDefinition): RunState {
  const runConfig = {
    ...config({
      graph,
      tools: [toolDefinition('add', 'keyed', { value: true })],
      limits: { toolCalls: null },
    }),
    segment: { steps: 1, bytes: 1e9 },
  };
  const message = { id: '', text: 'go', turn: 1 };
  return reduce(initialState(runConfig), { type: 'message-received', message });
}
