import { ApplicationFailure, WorkflowUpdateFailedError } from '@temporalio/client';
import { describe, expect, test } from 'vitest';
import { decidedText, memoRequests } from '../../src/client/requests.js';
import { queryTerm } from '../../src/client/run-row.js';
import { RefusedError } from '../../src/core/errors.js';
import { refusalReason } from '../../src/updates/execute-update.js';
import { DIGEST } from './samples.js';

const of = { run: 'desk-1', agent: 'desk' };
const entry = {
  id: 'r1',
  kind: 'approval',
  tool: 'refund',
  digest: DIGEST,
  expiresAt: null,
  shown: 'refund 60 €',
  raisedAt: 5,
  fix: 'perdure approve desk-1 r1',
};

describe('the requests in a memo', () => {
  test('are read with the run and its agent', () => {
    const memo = { requests: [entry, { ...entry, id: 'r2', expiresAt: 9 }], requestsTotal: 25 };
    expect(memoRequests(memo, of)).toEqual({
      requests: [
        { ...of, ...entry },
        { ...of, ...entry, id: 'r2', expiresAt: 9 },
      ],
      more: 23,
    });
  });

  test('are marked while a decision is being checked, and their command shows them', () => {
    const memo = {
      requests: [
        { ...entry, checking: true },
        { ...entry, checking: 'yes' },
      ],
    };
    expect(memoRequests(memo, of).requests).toEqual([
      { ...of, ...entry, checking: true, fix: 'perdure inbox desk-1 r1' },
      { ...of, ...entry },
    ]);
  });

  test('have those who may decide, if they are some', () => {
    const deciders = [['ann', 'bob'], 'not_requester'] as const;
    const memo = {
      requests: [
        { ...entry, deciders },
        ...[[], 'ann', [7], [undefined], [[]]].map((odd) => ({ ...entry, deciders: odd })),
      ],
    };
    const [named, ...others] = memoRequests(memo, of).requests;
    expect(named).toEqual({ ...of, ...entry, deciders });
    for (const other of others) expect(other).toEqual({ ...of, ...entry });
  });

  test.each([
    undefined,
    {},
    { requests: null },
    { requests: 'r1' },
    { requests: { 0: entry } },
    { requests: [null, 7, 'x', [], {}] },
    { requests: [{ ...entry, id: '' }] },
    { requests: [{ ...entry, id: 1 }] },
    { requests: [{ ...entry, kind: 'toString' }] },
    { requests: [{ ...entry, kind: ['approval'] }] },
    { requests: [{ ...entry, digest: 'short' }] },
    { requests: [{ ...entry, raisedAt: '5' }] },
    { requests: [{ ...entry, raisedAt: Number.NaN }] },
    { requests: [{ ...entry, expiresAt: 'never' }] },
    { requests: [], requestsTotal: 'many' },
    { requests: [], requestsTotal: -4 },
  ])('are empty in %j', (memo) => {
    expect(memoRequests(memo, of)).toEqual({ requests: [], more: 0 });
  });

  test('are read despite malformed entries, and without fields that should be texts and are not', () => {
    const odd = { ...entry, tool: 7, shown: null, fix: undefined, extra: 1 };
    const [request, ...others] = memoRequests({ requests: [null, odd, {}] }, of).requests;
    expect(others).toEqual([]);
    expect(request).toEqual({
      ...of,
      id: 'r1',
      kind: 'approval',
      digest: DIGEST,
      expiresAt: null,
      raisedAt: 5,
      shown: '',
      fix: '',
    });
  });
});

describe('the reason of a refusal', () => {
  const failed = (type: string, ...details: unknown[]): WorkflowUpdateFailedError => {
    const cause = ApplicationFailure.create({ message: 'no', type, details });
    return new WorkflowUpdateFailedError('Workflow Update failed', cause);
  };

  test.each(['malformed', 'decided', 'expired', 'wrong_digest', 'checking', 'too_large'])(
    'is %s if the run reports it',
    (reason) => {
      expect(refusalReason(failed('Refused', reason))).toBe(reason);
    },
  );

  test.each([
    failed('Refused'),
    failed('Refused', 'of a newer version'),
    failed('Refused', 'toString'),
    failed('Refused', ['decided']),
    failed('Other', 'decided'),
    new Error('decided'),
    null,
  ])('is unknown in any other error', (error) => {
    expect(refusalReason(error)).toBeNull();
  });

  test('is null for an error that is not about a request', () => {
    expect(new RefusedError('no').reason).toBeNull();
    const cause = new Error('x');
    const error = new RefusedError('no', { reason: 'decided', cause });
    expect(error).toMatchObject({ reason: 'decided', cause, message: 'no', code: 'refused' });
  });
});

test('a value in a query cannot end its quotes', () => {
  expect(queryTerm('AgentName', `a' OR 'b`)).toBe(`AgentName = 'a'' OR ''b'`);
  expect(queryTerm('AgentName', `a\\' OR 1=1`)).toBe(`AgentName = 'a\\\\'' OR 1=1'`);
});

test('an expired request can no longer be decided, and a decided one cannot be decided again', () => {
  const text = (as: 'expired' | 'deny', by?: string): string | null => {
    const decided = { what: 'resolve', id: 'd', at: 0, request: 'r1', as } as const;
    return decidedText(
      { id: 'x', decisions: [by === undefined ? decided : { ...decided, by }] },
      'r1',
    );
  };
  expect(text('expired')).toBe(
    'request: r1 of run x expired at 1970-01-01T00:00:00Z, and can no longer be decided',
  );
  expect(text('deny', 'ann')).toBe(
    'request: r1 of run x was decided by ann (deny) at 1970-01-01T00:00:00Z, and cannot be decided again',
  );
});
