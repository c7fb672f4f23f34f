import type { LogEntry } from '@temporalio/worker';
import { expect, test } from 'vitest';
import { logWriter } from '../../src/cli/hosting/hosting.js';
import { isForPeople, logLine, newsFilter } from '../../src/worker/log-lines.js';

function entry(rest: Partial<LogEntry>): LogEntry {
  const timestampNanos = BigInt(Date.UTC(2026, 0, 2, 3, 4, 5)) * 1_000_000n;
  return { level: 'WARN', message: 'Activity failed', timestampNanos, ...rest };
}

test('an entry is one line with the run, the attempt, and the cause, with control characters escaped', () => {
  const meta = {
    sdkComponent: 'worker',
    taskToken: 'secret',
    workflowId: 'run\n1',
    activityType: 'runTool',
    attempt: 2,
    error: new Error('no \u001b[31mspace'),
  };
  expect(logLine(entry({ meta }))).toBe(
    '03:04:05 WARN Activity failed · run run 1 · runTool, attempt 2: no \\u001b[31mspace',
  );
  const report = { type: 'rate_limit', message: 'too many requests' };
  expect(logLine(entry({ message: 'model call failed', meta: { report } }))).toBe(
    '03:04:05 WARN model call failed: too many requests',
  );
});

test('entries of tools are shown, and those of the SDK are not', () => {
  const logged = entry({
    level: 'INFO',
    message: 'copied',
    meta: { sdkComponent: 'activity', files: 3 },
  });
  expect(isForPeople(logged)).toBe(true);
  expect(logLine(logged)).toBe('03:04:05 INFO copied: {"files":3}');
  expect(isForPeople(entry({ level: 'INFO', meta: { sdkComponent: 'worker' } }))).toBe(false);
  expect(isForPeople(entry({ level: 'INFO' }))).toBe(false);
  expect(isForPeople(entry({}))).toBe(true);
});

test('a message and a cause are whole, since they may end with what to do', () => {
  const message = `${'because '.repeat(30)}; add the key`;
  const error = new Error(`${'expected '.repeat(30)}; start a worker`);
  const line = logLine(entry({ message, meta: { error } }));
  expect(line).toBe(`03:04:05 WARN ${message}: ${error.message}`);
});

test('a warning that each attempt repeats is shown once a minute', () => {
  const isNews = newsFilter();
  const begun = entry({}).timestampNanos;
  const failed = (attempt: number, seconds: number, why = 'no agent', workflowId = 'r') =>
    isNews(
      entry({
        meta: { workflowId, activityType: 'loadAgent', attempt, error: new Error(why) },
        timestampNanos: begun + BigInt(seconds) * 1_000_000_000n,
      }),
    );
  expect([failed(1, 0), failed(2, 1), failed(3, 59)]).toEqual([true, false, false]);
  expect(failed(3, 59, 'no key')).toBe(true);
  expect(failed(1, 59, 'no agent', 'other')).toBe(true);
  expect([failed(4, 60), failed(5, 61)]).toEqual([true, false]);
  const fault = entry({ level: 'ERROR', message: 'x' });
  expect([isNews(fault), isNews(fault)]).toEqual([true, true]);
});

test('the commands that an entry names can be pasted, also those in its error', () => {
  const notes: string[] = [];
  const options = { config: 'other.ts' };
  const write = logWriter({ options, env: {}, note: (line) => notes.push(line) });
  write(entry({ message: 'not accepted; accept it with: perdure mcp accept shop lookup' }));
  write(entry({ meta: { error: new Error('stopped; see perdure doctor') } }));
  expect(notes).toEqual([
    '03:04:05 WARN not accepted; accept it with: npx perdure mcp accept --config other.ts shop lookup',
    '03:04:05 WARN Activity failed: stopped; see npx perdure doctor --config other.ts',
  ]);
});
