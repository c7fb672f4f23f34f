import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { artifact } from '../../src/tools/built-in/artifact.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createCalendar } from '../support/calendar.js';
import { historyBytes } from '../support/history-text.js';
import { gate } from '../support/gate.js';
import { expectKeptReplays } from '../support/replays.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';

// A result that a tool returns as an artifact is passed on by its name, so it never enters the
// state.

let desk: Desk;
beforeEach(async () => {
  desk = await createDesk(await createMemoryRig());
});
afterEach(async () => await desk.close());
afterAll(async () => await expectKeptReplays());

const { assistant } = createCalendar(() => desk);
const ROWS = 20_000;
const slow = gate();

const exportRows = defineTool({
  name: 'export_rows',
  description: 'Exports rows.',
  input: z.object({}),
  effect: 'read',
  execute: async () =>
    artifact(
      Array.from({ length: ROWS }, (_, id) => ({ id, note: 'a row of the export' })),
      { name: 'rows' },
    ),
});
const countRows = defineTool({
  name: 'count_rows',
  description: 'Counts the rows of an artifact.',
  input: z.object({ from: z.string() }),
  effect: 'keyed',
  execute: async ({ from }, { artifacts }) => {
    const rows = await artifacts.get(from, z.array(z.object({ id: z.number() })));
    desk.did(`${rows.length} rows of ${from}`);
    return { rows: rows.length };
  },
});
const waitForGate = defineTool({
  name: 'wait_for_gate',
  description: 'Waits.',
  input: z.object({}),
  effect: 'keyed',
  execute: async () => {
    await slow.wait();
    desk.did('waited');
    return 'ok';
  },
});

const work = async () =>
  await desk.work([assistant({ tools: [exportRows, countRows, waitForGate] })]);

test('a reference to an artifact is its name, even while an earlier action still runs', async () => {
  await work();
  const actions = [
    { id: 'a0', tool: 'wait_for_gate', arguments: {} },
    { id: 'a1', tool: 'export_rows', arguments: {} },
    { id: 'a2', tool: 'count_rows', arguments: { from: { $ref: 'a1' } } },
  ];
  desk.script([JSON.stringify({ actions }), 'Counted.']);
  const running = desk.run({ agent: 'assistant', message: 'count' });
  await expect.poll(() => desk.done, { timeout: 20_000 }).toEqual([`${ROWS} rows of rows`]);
  slow.release();
  const { outcome, history } = await running;
  expect(outcome).toMatchObject({
    answer: 'Counted.',
    output: { results: { a1: { ok: true }, a2: { ok: true, value: { rows: ROWS } } } },
  });
  expect(historyBytes(history)).toBeLessThan(200_000);
});

test('a reference into an artifact is refused, with the way to pass it on', async () => {
  await work();
  const actions = [
    { id: 'a1', tool: 'export_rows', arguments: {} },
    { id: 'a2', tool: 'count_rows', arguments: { from: { $ref: 'a1', path: '0.id' } } },
  ];
  desk.script([JSON.stringify({ actions }), 'It did not work.']);
  const { outcome } = await desk.run({ agent: 'assistant', message: 'count' });
  expect(outcome).toMatchObject({
    output: {
      results: {
        a2: {
          ok: false,
          error: { message: expect.stringContaining('the result of a1 is the artifact "rows"') },
        },
      },
    },
  });
});
