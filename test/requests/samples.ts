import type { Request } from '../../src/core/transcript/request.js';

export const DIGEST = 'ab12cd34ef56'.padEnd(64, '0');

/** Returns an open approval of a refund. */
export function approval(given: Partial<Request> = {}): Request {
  return {
    id: 'r1',
    kind: 'approval',
    call: 'call_1_1_0',
    tool: 'refund',
    effect: 'once',
    arguments: '{"order":17,"euros":60}',
    digest: DIGEST,
    shown: 'refund 60 € to order 17\norder: 17\neuros: 60',
    why: 'rule: ask refund where euros over 50',
    requester: 'web: ann',
    raisedAt: 1_000_000,
    expiresAt: null,
    onExpiry: 'deny',
    decisions: ['approve', 'deny', 'edit', 'answer'],
    deciders: ['not_requester'],
    fix: 'perdure approve desk-1 r1 --digest ab12cd34ef56',
    ...given,
  };
}
