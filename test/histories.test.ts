import { readdir, readFile } from 'node:fs/promises';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { describe, expect, test } from 'vitest';
import { outcomeOf, project } from '../src/history/projection.js';
import type { Outcome } from '../src/core/outcome.js';
import { readFact } from '../src/history/decode-event.js';
import { expectReplays } from './support/rig.js';

const FOLDER = new URL('./histories/', import.meta.url);
const FILES = (await readdir(FOLDER)).filter((name) => name.endsWith('.json'));

/** What an open run's end says of all its turns, as its events have to tell it too. */
const spentIn = ({ steps, toolCalls, usage }: Outcome): object => ({ steps, toolCalls, usage });

// Recorded by RECORD_HISTORIES=test/histories; what once ran must replay for ever.
describe('recorded histories', () => {
  test('are there', () => expect(FILES.length).toBeGreaterThan(5));

  test.each(FILES)('%s replays, and is retold to its end', async (name) => {
    const history = historyFromJSON(JSON.parse(await readFile(new URL(name, FOLDER), 'utf8')));
    const [started] = history.events ?? [];
    // The ids of called agents are made of it.
    const id = started?.workflowExecutionStartedEventAttributes?.workflowId ?? name;
    await expectReplays(history, id);
    const view = project((history.events ?? []).map(readFact));
    expect(view.ended).not.toBeNull();
    const recorded = view.ended && outcomeOf(view.ended);
    if (recorded === null || recorded.reason === 'input') return;
    expect(view.outcome).toEqual(recorded);
    const { state, turns } = view;
    if (state?.open) expect(state.total).toMatchObject(spentIn(recorded));
    else expect(turns.at(-1)?.outcome).toEqual(recorded);
  });
});
