import { expect, test } from 'vitest';
import {
  BUDGET,
  toModelError,
  attemptReport,
  decideFailure,
  findRefusedPart,
  modelFailure,
  namingWorker,
  uselessText,
  type FailedAttempt,
  type FailureDecision,
} from '../../src/activities/model/model-failures.js';
import { ModelError, type ModelErrorDetails } from '../../src/models/model.js';

function failure(details: Partial<ModelErrorDetails>): ModelError {
  return new ModelError('it failed', { kind: 'retry', type: 'http_503', ...details });
}

function decide(
  details: Partial<ModelErrorDetails>,
  attempt: Partial<FailedAttempt> = {},
): FailureDecision {
  return decideFailure(failure(details), {
    attempt: 1,
    elapsedMs: 0,
    random: () => 1,
    ...attempt,
  });
}

function delays(attempts: readonly number[], rest: Partial<FailedAttempt>): unknown[] {
  return attempts.map((attempt) => {
    const decision = decide({}, { attempt, ...rest });
    return decision.type === 'retry' ? decision.delayMs : decision;
  });
}

test('doubles the delay each time, up to 30 s', () => {
  expect(delays([1, 2, 3, 6, 7, 8, 60], { random: () => 1 })).toEqual([
    500, 1000, 2000, 16_000, 30_000, 30_000, 30_000,
  ]);
});

test('spreads the delays over the upper half', () => {
  expect(delays([1, 3], { random: () => 0 })).toEqual([250, 1000]);
  expect(delays([1, 3], { random: () => 0.5 })).toEqual([375, 1500]);
});

test('uses the longer of its own delay and the requested one', () => {
  expect(decide({ retryAfterMs: 3000 })).toEqual({ type: 'retry', delayMs: 3000 });
  expect(decide({ retryAfterMs: 3000 }, { attempt: 5 })).toEqual({ type: 'retry', delayMs: 8000 });
});

test('blocks after two minutes of retryable errors, but not before the third attempt', () => {
  const blocked = { type: 'blocked', reason: 'provider' };
  expect(decide({}, { attempt: 3, elapsedMs: 120_000 })).toEqual(blocked);
  expect(decide({}, { attempt: 20, elapsedMs: 119_999 }).type).toBe('retry');
  expect(decide({}, { attempt: 2, elapsedMs: 900_000 }).type).toBe('retry');
});

test('limits the attempts of a run that does not wait for its model, and never blocks it', () => {
  const failed = { type: 'failed', reason: 'error' };
  expect(decide({}, { attempt: 2, left: 1 }).type).toBe('retry');
  expect(decide({}, { attempt: 3, left: 0 })).toEqual(failed);
  expect(decide({ kind: 'empty' }, { uselessReplies: 1, left: 0 })).toEqual(failed);
  expect(decide({ kind: 'credentials' }, { left: 2 })).toEqual(failed);
  expect(decide({ retryAfterMs: 600_000 }, { left: 2 })).toEqual(failed);
  const tooLong = { type: 'failed', reason: 'context_too_long' };
  expect(decide({ kind: 'context_too_long' }, { left: 0 })).toEqual(tooLong);
});

test('waits for a budget, also in a run that does not wait for its model, and looks again by the next day', () => {
  const used = { kind: 'bad_request', type: BUDGET, retryAfterMs: 4 * 3_600_000 } as const;
  const blocked = { type: 'blocked', reason: 'budget' };
  expect([decide(used), decide(used, { left: 0 })]).toEqual([blocked, blocked]);
  const probe = (retryAfterMs: number, attempt: number, left?: number) =>
    decide(
      { ...used, retryAfterMs },
      { attempt, blocked: 'budget', random: () => 0.5, ...(left !== undefined && { left }) },
    );
  expect(probe(used.retryAfterMs, 1)).toEqual({ type: 'retry', delayMs: 22_500 });
  expect(probe(used.retryAfterMs, 20, 0)).toEqual({ type: 'retry', delayMs: 450_000 });
  // The runs that wait for the next day begin within five seconds.
  expect(probe(60_000, 20)).toEqual({ type: 'retry', delayMs: 62_500 });
});

test('blocks at once for a delay of more than two minutes, and keeps the delay, capped', () => {
  expect(decide({ retryAfterMs: 120_000 })).toEqual({ type: 'retry', delayMs: 120_000 });
  expect(decide({ retryAfterMs: 120_001 })).toEqual({
    type: 'blocked',
    reason: 'provider',
    probeAfterMs: 120_001,
  });
  expect(decide({ retryAfterMs: 1e9 })).toMatchObject({ probeAfterMs: 600_000 });
});

test('blocks at once if only an operator can help', () => {
  for (const kind of ['quota', 'credentials', 'model', 'bad_request'] as const) {
    expect(decide({ kind })).toEqual({ type: 'blocked', reason: kind });
  }
});

test('fails if no retry can help', () => {
  expect(decide({ kind: 'request' })).toEqual({ type: 'failed', reason: 'error' });
  expect(decide({ kind: 'context_too_long' })).toEqual({
    type: 'failed',
    reason: 'context_too_long',
  });
});

test('retries two empty replies, and fails at the third', () => {
  expect(decide({ kind: 'empty' }, { attempt: 2 })).toEqual({ type: 'retry', delayMs: 1000 });
  expect(decide({ kind: 'empty' }, { attempt: 3 })).toEqual({ type: 'failed', reason: 'error' });
});

test('takes two more samples of a malformed reply, and fails at the third', () => {
  const attempts = [1, 2, 3].map((uselessReplies) =>
    decide({ kind: 'malformed' }, { attempt: 9, uselessReplies }),
  );
  expect(attempts.map(({ type }) => type)).toEqual(['retry', 'retry', 'failed']);
});

test('says that no further reply is requested, because each may have been paid for', () => {
  const error = failure({ kind: 'malformed', type: 'no_message' });
  const decision = decide({ kind: 'malformed' }, { uselessReplies: 3 });
  const report = attemptReport(error, decision, { attempt: 3, at: 0 });
  const { details } = modelFailure(decision, report, { why: uselessText(error, 3) });
  expect(details).toMatchObject([
    {
      message:
        'it failed; 3 replies could not be used, and each may have been paid for, so no further one is requested',
    },
  ]);
  expect(uselessText(failure({ kind: 'request' }), 3)).toBe('');
});

test('names the worker and what its configuration lacks, and probes soon, if another worker may succeed', () => {
  const error = failure({ kind: 'credentials', type: 'no_credentials' });
  const smart = { model: 'smart', meant: undefined };
  const kept =
    ' run keeps the name: add the entry, or cancel the run and start another): it failed';
  expect(namingWorker(error, smart).message).toMatch(
    /^worker \d+@\S+ \(no entry "smart" in `models` of its config; this run .*: it failed Set it in the environment of that worker, and restart the worker\.$/,
  );
  expect(namingWorker(error, smart).message).toContain(`of its config; this${kept}`);
  expect(namingWorker(error, { model: 'dmo', meant: 'demo' }).message).toContain(
    ` (no entry "dmo" in \`models\` of its config; did you mean "demo"? This${kept}`,
  );
  const refused = failure({ kind: 'credentials', type: 'authentication' });
  expect(namingWorker(refused, null).message).toMatch(/^worker \d+@\S+: it failed$/);
  expect(namingWorker(failure({}), smart).message).toBe('it failed');
  const decision = decide({ kind: 'credentials' });
  const report = attemptReport(error, decision, { attempt: 1, at: 0 });
  expect(modelFailure(decision, report).details).toMatchObject([{ elsewhere: true }]);
  const probes = (details: Partial<ModelErrorDetails>) =>
    [1, 2, 3, 9, 20, 99].map((attempt) =>
      decide({ kind: 'credentials', ...details }, { attempt, blocked: 'credentials' }),
    );
  expect(probes({}).map((one) => 'delayMs' in one && one.delayMs)).toEqual([
    1_000, 2_000, 4_000, 256_000, 600_000, 600_000,
  ]);
  // Nothing was sent, so the probes cost nothing.
  expect(probes({ type: 'no_credentials' }).map((one) => 'delayMs' in one && one.delayMs)).toEqual([
    500, 750, 1_125, 5_000, 5_000, 30_000,
  ]);
});

test('counts only the empty replies if their number is known', () => {
  expect(decide({ kind: 'empty' }, { attempt: 9, uselessReplies: 2 }).type).toBe('retry');
  expect(decide({ kind: 'empty' }, { attempt: 9, uselessReplies: 3 }).type).toBe('failed');
});

test('probes under its first reason, from 30 s up to 10 minutes', () => {
  expect(delays([1, 2, 5, 6, 40], { blocked: 'provider', elapsedMs: 9e9 })).toEqual([
    30_000, 60_000, 480_000, 600_000, 600_000,
  ]);
  expect(decide({ kind: 'quota' }, { blocked: 'quota' })).toEqual({
    type: 'retry',
    delayMs: 30_000,
  });
  expect(decide({ kind: 'quota', retryAfterMs: 45_000 }, { blocked: 'quota' })).toEqual({
    type: 'retry',
    delayMs: 45_000,
  });
  expect(decide({ retryAfterMs: 300_000 }, { blocked: 'provider' })).toEqual({
    type: 'retry',
    delayMs: 300_000,
  });
});

test('reports that a probe finds another reason, or an end', () => {
  expect(decide({ kind: 'credentials' }, { blocked: 'quota' })).toEqual({
    type: 'blocked',
    reason: 'credentials',
  });
  expect(decide({ kind: 'request' }, { blocked: 'provider' }).type).toBe('failed');
});

test('does not treat one transient error of a probe as another reason', () => {
  expect(decide({}, { blocked: 'quota' })).toEqual({ type: 'retry', delayMs: 30_000 });
  const lasting = decide({}, { blocked: 'quota', attempt: 3, elapsedMs: 150_000 });
  expect(lasting).toEqual({ type: 'blocked', reason: 'provider' });
});

test('reports an attempt without unknown optional parts', () => {
  const decision: FailureDecision = { type: 'retry', delayMs: 700 };
  expect(attemptReport(failure({}), decision, { attempt: 2, at: 5 })).toEqual({
    type: 'http_503',
    attempt: 2,
    waitMs: 700,
    at: 5,
    message: 'it failed',
  });
  const known = failure({ status: 503, requestId: 'r' });
  const blocked: FailureDecision = { type: 'blocked', reason: 'provider', probeAfterMs: 9 };
  expect(attemptReport(known, blocked, { attempt: 1, at: 5 })).toMatchObject({
    status: 503,
    requestId: 'r',
    waitMs: 9,
  });
});

test('limits a report to 300 characters on one line, without keys', () => {
  const error = new ModelError(`sk-abc12345\n${'x'.repeat(900)}`, { kind: 'retry', type: 't' });
  const decision: FailureDecision = { type: 'failed', reason: 'error' };
  const { message, waitMs } = attemptReport(error, decision, { attempt: 1, at: 0 });
  expect(message).toMatch(/^\[redacted\] x+…$/);
  expect(message).toHaveLength(300);
  expect(waitMs).toBe(0);
});

test('leaves only retries to Temporal, with the reason in the details', () => {
  const report = { type: 'rate_limit', attempt: 1, waitMs: 700, at: 0, message: 'slow' };
  expect(modelFailure({ type: 'retry', delayMs: 700 }, report)).toMatchObject({
    message: 'slow',
    type: 'rate_limit',
    nonRetryable: false,
    nextRetryDelay: 700,
    details: [{ reports: [report] }],
  });
  const earlier = { ...report, attempt: 0 };
  const blocked = modelFailure({ type: 'blocked', reason: 'quota', probeAfterMs: 9 }, report, {
    reports: [earlier],
  });
  expect(blocked).toMatchObject({
    nonRetryable: true,
    details: [
      { type: 'blocked', reason: 'quota', message: 'slow', waitMs: 9, reports: [earlier, report] },
    ],
  });
  expect(blocked.nextRetryDelay).toBeUndefined();
  const failed = modelFailure({ type: 'failed', reason: 'error' }, report);
  expect(failed).toMatchObject({
    nonRetryable: true,
    details: [{ type: 'failed', reason: 'error', reports: [report] }],
  });
});

test('treats any other error of a model as retryable', () => {
  const error = failure({});
  expect(toModelError(error)).toBe(error);
  // An error of another copy of the package, which an adapter may have loaded.
  const details = { kind: 'quota', type: 'x' };
  const foreign = Object.assign(new Error('spent'), { name: 'ModelError', details });
  expect(toModelError(foreign).details).toBe(details);
  const odd = Object.assign(new Error('x'), { name: 'ModelError', details: { kind: 'odd' } });
  expect(toModelError(odd).details).toEqual({ kind: 'retry', type: 'unexpected' });
  expect(toModelError(new TypeError('oops'))).toMatchObject({
    message: 'The model threw TypeError: oops',
    details: { kind: 'retry', type: 'unexpected' },
  });
  expect(toModelError('boom').message).toBe('The model threw boom');
  expect(toModelError(Object.create(null)).message).toBe('The model threw [object Object]');
});

test.each(['decide', 'limit', 'no_logprobs', 'bad_setting', 'no_native_tools', 'answer_too_large'])(
  'a failure of type %s leaves nothing out of later prompts, whatever its text says',
  (type) => {
    for (const message of ['no database', 'the image in the document', 'bad base64']) {
      expect(findRefusedPart(new ModelError(message, { kind: 'request', type }))).toBeUndefined();
    }
  },
);

test('a refused message or attachment is left out, and an outage leaves nothing out', () => {
  const partOf = (details: Partial<ModelErrorDetails>) => findRefusedPart(failure(details));
  expect(partOf({ kind: 'request', type: 'http_400' })).toBe('message');
  expect(partOf({ kind: 'bad_request', type: 'http_400' })).toBe('message');
  expect(partOf({ kind: 'request', type: 'no_images' })).toBe('attachments');
  expect(partOf({ type: 'no_images' })).toBeUndefined();
});
