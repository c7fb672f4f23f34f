import { readdir, readFile } from 'node:fs/promises';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { beforeAll, describe, expect, test } from 'vitest';
import { endOutcome, project } from '../src/history/projection.js';
import type { Outcome } from '../src/core/transcript/outcome.js';
import { decodeEvent } from '../src/history/decode-event.js';
import { carriedDifferences, endDifferences } from './support/oracle.js';
import { replayFaults } from './support/replays.js';

const FOLDER = new URL('./histories/', import.meta.url);
const FILES = (await readdir(FOLDER)).filter((name) => name.endsWith('.json'));

/** The totals of all turns at the end of an open run; its events must add up to the same. */
const spentIn = ({ steps, toolCalls, usage }: Outcome): object => ({ steps, toolCalls, usage });

/** The recorded files; the ids of called agents depend on the id of the workflow. */
const RECORDED = await Promise.all(
  FILES.map(async (name) => {
    const history = historyFromJSON(JSON.parse(await readFile(new URL(name, FOLDER), 'utf8')));
    const started = history.events?.[0]?.workflowExecutionStartedEventAttributes;
    return { name, history, workflowId: started?.workflowId ?? name };
  }),
);

// Recorded by RECORD_HISTORIES=test/histories. A recorded history must always replay.
describe('recorded histories', () => {
  let faults: ReadonlyMap<string, string>;
  beforeAll(async () => {
    faults = await replayFaults(RECORDED);
  });

  test('exist', () => expect(FILES.length).toBeGreaterThan(5));

  test.each(RECORDED)('$name replays, and is projected to its end', ({ name, history }) => {
    expect(faults.get(name)).toBeUndefined();
    const view = project((history.events ?? []).map(decodeEvent));
    expect(view.ended).not.toBeNull();
    const recorded = view.ended && endOutcome(view.ended);
    if (recorded === null || recorded.reason === 'input') return;
    expect(view.outcome).toEqual(recorded);
    const { state, turns } = view;
    if (state?.open) expect(state.total).toMatchObject(spentIn(recorded));
    else expect(turns.at(-1)?.outcome).toEqual(recorded);
  });

  // The end of a history states the outcome, and what the next segment gets. A reader must know
  // both before.
  test.each(RECORDED)('$name is projected to the same state before its end', ({ history }) => {
    expect(carriedDifferences(history)).toEqual([]);
    expect(endDifferences(history)).toEqual([]);
  });
});
