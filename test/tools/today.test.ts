import { describe, expect, test } from 'vitest';
import { today } from '../../src/tools/built-in/today.js';
import type { ToolContext } from '../../src/tools/tool.js';

const context = {} as ToolContext;

describe('today', () => {
  test('tells date, time, zone and offset', () => {
    expect(today({ timeZone: 'Asia/Tokyo' }).execute({}, context)).toMatch(
      /^\w+day \d{4}-\d\d-\d\d \d\d:\d\d in Asia\/Tokyo \(GMT\+09:00\)$/,
    );
    expect(today().execute({ timeZone: 'UTC' }, context)).toContain('in UTC (GMT+00:00)');
  });

  test('refuses a zone that does not exist, with the cure', () => {
    expect(() => today({ timeZone: 'Mars/Olympus' })).toThrow('IANA name');
    expect(() => today().execute({ timeZone: 'x' }, context)).toThrow('"x" is unknown');
  });
});
