import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { needsWorker } from '../../src/cli/hosting/server-notes.js';
import { type RunStatus, statusName } from '../../src/core/state/status.js';
import { statusText } from '../../src/core/state/status-text.js';
import { toRunStatus } from '../../src/client/status.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import { historyFromJson, type History } from '../../src/history/history-event.js';
import { project } from '../../src/history/projection.js';

type RawEvent = NonNullable<History['events']>[number];

function recorded(name: string): readonly RawEvent[] {
  const file = new URL(`../histories/${name}.json`, import.meta.url);
  const json = JSON.parse(readFileSync(file, 'utf8')) as { readonly events: readonly unknown[] };
  return historyFromJson(json).events ?? [];
}

const all = recorded('sequential-calls');
/** A history that ends while the workflow waits for its next task. */
const open = all.slice(
  0,
  all.findLastIndex((event) => event.workflowTaskCompletedEventAttributes),
);

/** Returns the status of a run whose history ends with these events, after `failures` in a row. */
function statusOf(
  added: readonly object[],
  failures: number,
  before: readonly RawEvent[] = open,
): RunStatus {
  const events = [...before, ...added] as RawEvent[];
  const decoded = events.map(decodeEvent);
  const raw = { pendingWorkflowTask: { attempt: failures + 1 }, pendingActivities: [] };
  const description = { status: { name: 'RUNNING' }, raw };
  const run = {
    id: 'desk-1',
    runId: 'r',
    taskQueue: 'q',
    agent: 'a',
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parts that a status reads
    description: description as never,
    history: { events },
    events: decoded,
    view: project(decoded),
    terminatedWhy: '',
  };
  return toRunStatus(run, 0);
}

function messageOf(added: readonly object[], failures: number): string | null {
  return statusOf(added, failures).message;
}

/** A marker as the SDK records it. */
function patch(id: string): object {
  const data = Buffer.from(JSON.stringify({ id, deprecated: false }));
  const payload = { metadata: { encoding: Buffer.from('json/plain') }, data };
  return {
    eventId: open.length + 1,
    markerRecordedEventAttributes: {
      markerName: 'core_patch',
      details: { 'patch-data': { payloads: [payload] } },
    },
  };
}

const failed = (message: string): object => ({
  workflowTaskFailedEventAttributes: { failure: { message } },
});

describe('the status of a run that workers do not continue', () => {
  test('shows their error, on one line and cut', () => {
    expect(messageOf([failed('odd\nat x')], 1)).toBeNull();
    const text = messageOf([failed(`Nondeterminism: ${'x'.repeat(1_000)}\nat x`)], 3);
    expect(text).toMatch(
      /^workers cannot continue the run \(3 failures in a row\): Nondet.*x…; if/,
    );
    expect(text?.length).toBeLessThan(500);
    expect(messageOf([failed('')], 2)).toContain("their logs and the run's history say why");
  });

  test('tells steps that time out from failures that need another version', () => {
    const text = messageOf([failed('odd'), { workflowTaskTimedOutEventAttributes: {} }], 3);
    expect(text).toContain('(3 times in a row; the first time, the step timed out)');
    expect(text).not.toContain('version');
  });

  test('says that a newer version ran it, by the patch that this version does not know', () => {
    expect(messageOf([patch('semantics-2')], 0)).toBeNull();
    expect(messageOf([patch('semantics-9')], 0)).toContain(
      'a newer version of perdure wrote the run: the run\'s history has the patch "semantics-9"',
    );
  });
});

test('a run that was just canceled has not ended before a worker carries the cancel out', () => {
  const canceled = recorded('idle-then-cancelled');
  const at = canceled.findIndex((one) => one.workflowExecutionCancelRequestedEventAttributes);
  const status = statusOf([], 0, canceled.slice(0, at + 1));
  expect(statusName(status)).toBe('working');
  expect(status.message).toMatch(
    /^a cancel is requested by .*; the run ends when a worker carries it out$/,
  );
});

describe('a run whose worker was killed in its last workflow task', () => {
  const started = all.findLastIndex((event) => event.workflowTaskStartedEventAttributes);
  const timedOut = { eventId: started + 2, workflowTaskTimedOutEventAttributes: {} };

  test.each([
    ['started', []],
    ['timed out', [timedOut]],
  ])('is working as long as the server has it open, after its task has %s', (_, added) => {
    const status = statusOf(added, 0, all.slice(0, started + 1));
    expect(statusText({ ...status, status: statusName(status) })).toBe('working');
    expect(status).toMatchObject({ outcome: null, message: null, reason: null });
    expect(needsWorker(status)).toBe(true);
  });

  test('ends when the server has its end', () => {
    const status = statusOf([], 0, all);
    expect(statusText({ ...status, status: statusName(status) })).toBe('completed (answer)');
  });
});
