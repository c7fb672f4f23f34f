import { describe, expect, test } from 'vitest';
import { today } from '../../src/tools/built-in/default-tools.js';
import { toolContext } from '../../src/testing.js';

const context = toolContext();

describe('today', () => {
  test('returns date, time, zone, and offset', async () => {
    expect(await today({ timeZone: 'Asia/Tokyo' }).execute({}, context)).toMatch(
      /^\w+day \d{4}-\d\d-\d\d \d\d:\d\d in Asia\/Tokyo \(GMT\+09:00\)$/,
    );
    expect(await today().execute({ timeZone: 'UTC' }, context)).toContain('in UTC (GMT+00:00)');
  });

  test('refuses a zone that does not exist, with the fix', async () => {
    expect(() => today({ timeZone: 'Mars/Olympus' })).toThrow('IANA name');
    await expect(today().execute({ timeZone: 'x' }, context)).rejects.toThrow('"x" is unknown');
  });
});
