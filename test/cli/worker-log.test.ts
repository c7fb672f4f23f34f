import type { LogEntry } from '@temporalio/worker';
import { expect, test } from 'vitest';
import { isForPeople, logLine } from '../../src/cli/hosting/hosting.js';

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
