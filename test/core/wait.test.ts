import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { waitedText, waitProblem, waitUntil } from '../../src/core/calls/batch.js';
import { anyString } from '../support/any-string.js';

const NOW = Date.parse('2027-01-10T12:00:00Z');
const DAY_MS = 86_400_000;

function until(text: string, fromMs = NOW): ReturnType<typeof waitUntil> {
  return waitUntil(JSON.stringify({ until: text }), fromMs);
}

function problemOf(value: unknown): string {
  const result = waitUntil(JSON.stringify(value), NOW);
  if (typeof result !== 'object') throw new Error(`no problem, but ${result}`);
  expect(waitProblem(value)).toBe(result.problem);
  return result.problem;
}

describe('waitUntil', () => {
  test('adds seconds to the time at which the wait began', () => {
    expect(waitUntil('{"seconds":3600}', NOW)).toBe(NOW + 3_600_000);
    expect(waitUntil('{"seconds":0.0001,"reason":"a blink"}', NOW)).toBe(NOW + 1);
    expect(waitUntil('{"seconds":31622400}', NOW)).toBe(NOW + 366 * DAY_MS);
  });

  test.each([
    ['2027-03-01T10:00:00Z', '2027-03-01T10:00:00Z'],
    ['2027-03-01T10:00Z', '2027-03-01T10:00:00Z'],
    ['2027-03-01t10:00:00z', '2027-03-01T10:00:00Z'],
    [' 2027-03-01 10:00:00+02 ', '2027-03-01T08:00:00Z'],
    ['2027-03-01T10:00:00.5+0530', '2027-03-01T04:30:00.500Z'],
    ['2027-03-01T10:00:00,123999-03:30', '2027-03-01T13:30:00.123Z'],
    ['2027-03-02T10:00:00+23:59', '2027-03-01T10:01:00Z'],
    ['2027-03-01 10:00:00.5-02', '2027-03-01T12:00:00.500Z'],
    ['2027-12-31T23:30:00-01:00', '2028-01-01T00:30:00Z'],
    ['2028-01-01T00:30:00+01:00', '2027-12-31T23:30:00Z'],
  ])('reads %s as %s', (text, moment) => {
    expect(until(text)).toBe(Date.parse(moment));
  });

  test('uses the offset as written when clocks change', () => {
    // In Berlin, 02:30 does not exist on one of these days, and exists twice on the other.
    expect(until('2027-03-28T02:30:00+01:00')).toBe(Date.parse('2027-03-28T01:30:00Z'));
    const first = until('2027-10-31T02:30:00+02:00');
    const second = until('2027-10-31T02:30:00+01:00');
    expect(Number(second) - Number(first)).toBe(3_600_000);
  });

  test('reads every time as the platform does', () => {
    const offset = fc.integer({ min: -14 * 60, max: 14 * 60 });
    const moment = fc.date({
      min: new Date('0001-01-02T00:00:00Z'),
      max: new Date('9998-12-30T00:00:00Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(moment, offset, (date, minutes) => {
        const local = new Date(date.getTime() + minutes * 60_000).toISOString().slice(0, -1);
        const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
        const sign = minutes < 0 ? '-' : '+';
        const text = `${local}${sign}${String(hours).padStart(2, '0')}:${String(rest).padStart(2, '0')}`;
        expect(until(text, date.getTime())).toBe(Date.parse(text));
        expect(until(text, date.getTime() - 1)).toBe(date.getTime());
      }),
      { numRuns: 500 },
    );
  });

  test('does not wait for a time in the past', () => {
    expect(until('2027-01-10T11:59:59Z')).toBe(NOW);
    expect(until('1969-07-20T20:17:40Z')).toBe(NOW);
  });

  test('refuses a time more than 366 days ahead', () => {
    expect(until('2028-01-11T12:00:00Z')).toBe(NOW + 366 * DAY_MS);
    expect(until('2028-01-11T12:00:00.001Z')).toEqual({
      problem: 'until 2028-01-11T12:00:00.001Z is more than 366 days ahead; give an earlier moment',
    });
    expect(problemOf({ seconds: 31_622_400.5 })).toBe(
      '`seconds` must be a positive number of at most 31622400 (366 days), not 31622400.5',
    );
  });

  test('refuses a date or a time without an offset, and shows how to write it', () => {
    expect(problemOf({ until: '2027-03-28T09:00' })).toBe(
      'until 2027-03-28T09:00 has no offset from UTC, so it may mean many moments; ' +
        'write 2027-03-28T09:00Z, or the offset that is meant, such as 2027-03-28T09:00+02:00',
    );
    expect(problemOf({ until: '2027-03-28' })).toContain('write 2027-03-28T00:00:00Z, or');
  });

  test.each([
    '2027-02-29T10:00:00Z',
    '2100-02-29T10:00:00Z',
    '2027-04-31T10:00:00Z',
    '2027-12-32T10:00:00Z',
    '2027-13-01T10:00:00Z',
    '2027-00-10T10:00:00Z',
    '2027-01-00T10:00:00Z',
    '2027-01-01T24:00:00Z',
    '2027-01-01T10:60:00Z',
    '2027-01-01T10:00:60Z',
    '2027-01-01T10:00:00+24:00',
    '2027-01-01T10:00:00+02:60',
  ])('refuses %s, which does not exist', (text) => {
    expect(problemOf({ until: text })).toBe(
      `until ${text} is not a valid time: a part of it is out of range`,
    );
  });

  test('knows the leap days', () => {
    const from = Date.parse('2028-02-01T00:00:00Z');
    expect(until('2028-02-29T10:00:00Z', from)).toBe(Date.parse('2028-02-29T10:00:00Z'));
    const century = Date.parse('2000-02-01T00:00:00Z');
    expect(until('2000-02-29T10:00:00Z', century)).toBe(Date.parse('2000-02-29T10:00:00Z'));
  });

  test.each([
    [{}, 'give exactly one of'],
    [{ seconds: 5, until: '2027-03-01T10:00:00Z' }, 'give exactly one of'],
    [{ reason: 'none' }, 'give exactly one of'],
    [[], 'give exactly one of'],
    ['soon', 'give exactly one of'],
    [{ seconds: 0 }, '`seconds` must be a positive number'],
    [{ seconds: -1 }, 'not -1'],
    [{ seconds: '60' }, 'not "60"'],
    [{ seconds: null }, 'not null'],
    [{ seconds: [60] }, 'not an object'],
    [{ until: 'tomorrow at nine' }, 'such as 2027-03-28T09:00:00+02:00'],
    [{ until: 1_800_000_000 }, 'not 1800000000'],
    [{ until: '2027-03-01T10:00:00[Europe/Berlin]' }, '`until` must be a moment in ISO 8601'],
    [{ until: '+002027-03-01T10:00:00Z' }, '`until` must be a moment in ISO 8601'],
    [{ until: '２０２７-03-01T10:00:00Z' }, '`until` must be a moment in ISO 8601'],
  ])('refuses %j with a reason', (value, reason) => {
    expect(problemOf(value)).toContain(reason);
  });

  test('quotes little of an invalid value, and never half a character', () => {
    expect(problemOf({ until: 'x'.repeat(61) })).toContain(`not "${'x'.repeat(60)}"`);
    const problem = problemOf({ until: `${'x'.repeat(59)}😀${'x'.repeat(1_000)}` });
    expect(problem.length).toBeLessThan(250);
    expect(problem).not.toMatch(/\p{Surrogate}/u);
  });
});

test('waitProblem finds nothing wrong with a valid wait, whenever it begins', () => {
  expect(waitProblem({ seconds: 5 })).toBeNull();
  expect(waitProblem({ until: '2099-01-01T00:00:00Z', reason: 'far away' })).toBeNull();
});

describe('waitedText', () => {
  test("states how long or until when, in the model's words", () => {
    expect(waitedText('{"seconds":3600}', false)).toBe('waited 3600 s');
    expect(waitedText('{"until":"2027-03-01T10:00:00+01:00"}', false)).toBe(
      'waited until 2027-03-01T10:00:00+01:00',
    );
  });

  test('states that a message ended it early', () => {
    expect(waitedText('{"seconds":0.5}', true)).toBe(
      'woken early by a message; the wait was to take 0.5 s',
    );
    expect(waitedText('{"until":"2027-03-01 10:00z"}', true)).toBe(
      'woken early by a message; the wait was until 2027-03-01 10:00Z',
    );
  });

  test('has a text for invalid arguments too', () => {
    expect(waitedText('{', false)).toBe('waited');
    expect(waitedText('{', true)).toBe('woken early by a message');
  });
});

test('any text gives a value, and the same one each time', () => {
  const field = fc.oneof(
    fc.string(),
    fc.double(),
    fc.jsonValue(),
    fc.constant('2027-03-01T10:00Z'),
  );
  const shaped = fc.record({ seconds: field, until: field }, { requiredKeys: [] });
  const text = fc.oneof(
    anyString(),
    fc.json(),
    shaped.map((value) => JSON.stringify(value)),
  );
  fc.assert(
    fc.property(text, fc.boolean(), (argumentsJson, woken) => {
      const end = waitUntil(argumentsJson, NOW);
      if (typeof end === 'number') {
        expect(end).toBeGreaterThanOrEqual(NOW);
        expect(end).toBeLessThanOrEqual(NOW + 366 * DAY_MS);
        expect(Number.isInteger(end)).toBe(true);
      } else {
        expect(end.problem).not.toBe('');
      }
      expect(waitUntil(argumentsJson, NOW)).toEqual(end);
      const result = waitedText(argumentsJson, woken);
      expect(result.startsWith(woken ? 'woken early' : 'waited')).toBe(true);
      expect(result.length).toBeLessThan(150);
    }),
    { numRuns: 1_000 },
  );
});
