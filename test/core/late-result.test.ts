import { readFile } from 'node:fs/promises';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { expect, test } from 'vitest';
import { isAwaited } from '../../src/core/interpret/interpret.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import type { HistoryEvent } from '../../src/history/history-event.js';
import { project } from '../../src/history/projection.js';

const file = new URL('../histories/forked-run.json', import.meta.url);
const json = JSON.parse(await readFile(file, 'utf8'));
const events = (historyFromJSON(json).events ?? []).map(decodeEvent);

/** The history in which the copy was canceled for a second one, and both ended. */
function copiedTwice(): readonly HistoryEvent[] {
  let copy = 0;
  return events.flatMap((event): HistoryEvent[] => {
    const { id, at } = event;
    if (event.type === 'scheduled' && event.activity === 'forkMessages') {
      copy = id;
      const asked: HistoryEvent = {
        type: 'activity-cancel-requested',
        id: id + 0.1,
        at,
        scheduled: id,
      };
      return [event, asked, { ...event, id: id + 0.2 }];
    }
    if (event.type !== 'completed' || event.scheduled !== copy) return [event];
    return [event, { ...event, id: id + 0.1, scheduled: copy + 0.2 }];
  });
}

test('the result of a copy that was canceled for another one does not count', () => {
  const twice = copiedTwice();
  expect(twice).toHaveLength(events.length + 3);
  const { messages, state } = project(twice);
  const once = project(events);
  expect(messages).toEqual(once.messages);
  expect(state?.transcript).toEqual(once.state?.transcript);
});

test.each([
  ['callModel', true],
  ['runTool', true],
  ['runReads', true],
  ['runFunction', true],
  ['retrieveDocuments', true],
  ['rememberTurn', true],
  ['checkDecision', false],
  ['notifyRequest', true],
  ['askRun', true],
  ['followRun', true],
  ['an activity of another program', true],
  ['loadAgent', false],
  ['archiveMessages', false],
  ['forkMessages', false],
  ['checkBlob', false],
])('a run waits until a canceled %s has ended, because it may act: %s', (activity, awaited) => {
  expect(isAwaited(activity)).toBe(awaited);
});
