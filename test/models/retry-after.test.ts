import { expect, test } from 'vitest';
import { retryAfterMs } from '../../src/models/wire/errors.js';

const NOW = Date.parse('2026-11-20T10:00:00Z');

test.each<[string, Record<string, string>, number | undefined]>([
  ['nothing', {}, undefined],
  ['milliseconds', { 'retry-after-ms': '1200.4' }, 1201],
  ['milliseconds before seconds', { 'retry-after-ms': '5', 'retry-after': '9' }, 5],
  ['seconds', { 'retry-after': '3' }, 3000],
  ['parts of a second', { 'retry-after': ' 0.5 ' }, 500],
  ['zero', { 'retry-after': '0' }, 0],
  ['invalid milliseconds next to seconds', { 'retry-after-ms': 'soon', 'retry-after': '2' }, 2000],
  ['a date', { 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT' }, 30_000],
  ['an ISO date', { 'retry-after': '2026-11-20T10:01:00Z' }, 60_000],
  [
    'a date against the clock of the provider',
    { 'retry-after': 'Fri, 20 Nov 2026 12:00:30 GMT', date: 'Fri, 20 Nov 2026 12:00:00 GMT' },
    30_000,
  ],
  ['a date that has passed', { 'retry-after': 'Fri, 20 Nov 2026 09:00:00 GMT' }, 0],
  ['an absurd number', { 'retry-after': '9999999' }, 600_000],
  ['an absurd date', { 'retry-after': 'Fri, 20 Nov 2099 10:00:00 GMT' }, 600_000],
  ['a negative number', { 'retry-after': '-5' }, undefined],
  ['infinity', { 'retry-after': 'Infinity' }, undefined],
  ['words with a year', { 'retry-after': 'perhaps 2099' }, undefined],
  ['a broken date', { 'retry-after': 'Fri, 99 Nov 2026 GMT' }, undefined],
])('reads %s', (_name, headers, expected) => {
  expect(retryAfterMs(new Headers(headers), NOW)).toBe(expected);
});
