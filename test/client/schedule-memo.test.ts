import { expect, test } from 'vitest';
import { toScheduleMemo } from '../../src/client/schedule/view.js';

test.each([
  { agent: 'clerk', to: null, cron: '0 9 * * *', timeZone: 'Europe/Berlin' },
  { agent: null, to: 'desk-1', everyMs: 60_000 },
])('the memo %j of a schedule is read', (memo) => {
  expect(toScheduleMemo({ ...memo, later: 1 })).toEqual(memo);
});

test.each([
  undefined,
  null,
  'clerk',
  [],
  {},
  { agent: 7, to: null },
  { agent: 'a', to: {} },
  { agent: 'a', to: null, cron: 7 },
  { agent: 'a', to: null, everyMs: '60s' },
  { agent: 'a', to: null, everyMs: 1, timeZone: null },
])('%j is not the memo of a schedule', (memo) => {
  expect(toScheduleMemo(memo)).toBeNull();
});
