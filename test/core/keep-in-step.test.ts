import type { ActivateInput } from '@temporalio/workflow';
import { describe, expect, test } from 'vitest';
import { keepInStep } from '../../src/workflows/interceptors.js';

type Activation = ActivateInput['activation'];
type Job = NonNullable<Activation['jobs']>[number];

const RESULT: Job = { resolveActivity: {} };
const QUERY: Job = { queryWorkflow: {} };

interface Step {
  readonly length: number;
  readonly size: number;
  readonly time: number;
  readonly isReplaying?: boolean;
  readonly jobs?: readonly Job[];
}

/** Whether each of these activations reaches the workflow. */
function passed(...steps: readonly Step[]): readonly boolean[] {
  const interceptor = keepInStep();
  return steps.map(({ length, size, time, isReplaying = false, jobs = [RESULT] }) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- sizes and times are Longs
    const activation = {
      historyLength: length,
      historySizeBytes: size,
      timestamp: { seconds: time, nanos: 0 },
      isReplaying,
      jobs: [...jobs],
    } as unknown as Activation;
    let reached = false;
    try {
      interceptor.activate?.({ activation, batchIndex: 0 }, () => {
        reached = true;
      });
    } catch (error) {
      expect(String(error)).toContain('a query has brought this run ahead');
    }
    return reached;
  });
}

const FIRST = { length: 3, size: 100, time: 1 };
/** What a query delivers: events, but no start of a task. */
const AHEAD = { length: 8, size: 100, time: 1 };

describe('a run', () => {
  test('that a query has advanced fails the next task that delivers something', () => {
    expect(passed(FIRST, AHEAD, { length: 9, size: 200, time: 2 })).toEqual([true, true, false]);
  });

  test('is still ahead after further queries, and fails no query', () => {
    const query = { ...AHEAD, jobs: [QUERY] };
    const further = { ...AHEAD, length: 12 };
    const task = { length: 14, size: 300, time: 2 };
    const reached = passed(FIRST, AHEAD, query, further, query, task);
    expect(reached.indexOf(false)).toBe(5);
  });

  test('that was ahead on a server without history sizes is recognized by the time', () => {
    const steps = [FIRST, AHEAD, { length: 9, size: 0, time: 2 }].map((step) => ({
      ...step,
      size: 0,
    }));
    expect(passed(...steps)).toEqual([true, true, false]);
  });
});

describe('no task fails', () => {
  test.each<readonly [string, readonly Step[]]>([
    ['of a run whose tasks follow each other', [FIRST, { length: 9, size: 200, time: 2 }]],
    ['with several activations', [FIRST, FIRST, FIRST, { length: 9, size: 200, time: 2 }]],
    [
      // The server starts a task at the end of another before it has stored the results of that
      // one.
      'after two that tell the same size',
      [
        FIRST,
        { length: 9, size: 200, time: 2 },
        { length: 15, size: 200, time: 3 },
        { length: 21, size: 400, time: 4 },
      ],
    ],
    [
      // A local activity may have ended later than the server's clock, which determines the time.
      'after two that have the same time',
      [FIRST, { length: 9, size: 200, time: 1 }, { length: 15, size: 300, time: 1 }],
    ],
    [
      'in a replay, whatever it looks like',
      [FIRST, { ...AHEAD, isReplaying: true }, { length: 9, size: 200, time: 2 }],
    ],
  ])('%s', (_, steps) => {
    expect(passed(...steps)).toEqual(steps.map(() => true));
  });
});
