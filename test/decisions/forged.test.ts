import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Request } from '../../src/core/transcript/request.js';
import { isObject } from '../../src/core/text/json.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';

let desk: Desk;
let handle: WorkflowHandle;
let request: Request;
let other: Request;

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  effect: 'once',
  input: z.object({ euros: z.number() }),
  execute: ({ euros }) => {
    desk.did(`pay ${euros}`);
    return 'paid';
  },
});

const payer = defineAgent({
  name: 'payer',
  instructions: 'Pay.',
  model: 'script',
  tools: [pay],
  rules: [{ tool: 'pay', then: 'ask', deciders: ['ann', 'bob'] }],
});

beforeAll(async () => {
  desk = await createDesk(await createMemoryRig());
  await desk.work([payer]);
  desk.script([{ pay: { euros: 7 } }]);
  other = (await desk.asked({ agent: 'payer', message: 'pay' })).requests[0] as Request;
  desk.script([{ pay: { euros: 7 } }, 'Paid.']);
  const asked = await desk.asked({ agent: 'payer', message: 'pay' });
  ({ handle } = asked);
  request = asked.requests[0] as Request;
});
afterAll(async () => await desk.close());

const good = (): Record<string, unknown> => ({
  request: 'r1',
  digest: request.digest,
  as: 'approve',
  by: 'ann',
});

/** Forms that a forgery, a replay, or an error may have, with the reason that refuses each. */
const FORGED: readonly (readonly [string, () => unknown, string])[] = [
  ['no decision', () => null, 'malformed'],
  ['a text', () => 'approve', 'malformed'],
  ['an empty list', () => [], 'malformed'],
  ['no digest', () => ({ ...good(), digest: undefined }), 'malformed'],
  ['an empty digest', () => ({ ...good(), digest: '' }), 'wrong_digest'],
  [
    'the beginning of the digest',
    () => ({ ...good(), digest: request.digest.slice(0, 12) }),
    'wrong_digest',
  ],
  ['another digest', () => ({ ...good(), digest: 'f'.repeat(64) }), 'wrong_digest'],
  [
    'the digest of the same call in another run',
    () => ({ ...good(), digest: other.digest }),
    'wrong_digest',
  ],
  [
    'the digest in capitals',
    () => ({ ...good(), digest: request.digest.toUpperCase() }),
    'wrong_digest',
  ],
  ['an unknown request', () => ({ ...good(), request: 'r2' }), 'unknown_request'],
  [
    'a prototype name as the request',
    () => ({ ...good(), request: '__proto__' }),
    'unknown_request',
  ],
  [
    'the id of the call as the request',
    () => ({ ...good(), request: 'call_1_1_0' }),
    'unknown_request',
  ],
  ['a decision that is not offered', () => ({ ...good(), as: 'happened' }), 'not_offered'],
  ['a decision of another kind', () => ({ ...good(), as: 'accept' }), 'not_offered'],
  ['a word that is not a decision', () => ({ ...good(), as: 'yes' }), 'malformed'],
  ['no decider', () => ({ ...good(), by: undefined }), 'not_a_decider'],
  ['a person who may not decide', () => ({ ...good(), by: 'eve' }), 'not_a_decider'],
  ['a name that only looks the same', () => ({ ...good(), by: 'ann\u200b' }), 'not_a_decider'],
  ['a prototype name as the decider', () => ({ ...good(), by: 'constructor' }), 'not_a_decider'],
  ['arguments with an approval', () => ({ ...good(), arguments: { euros: 1_000 } }), 'malformed'],
  ['a result with a yes', () => ({ ...good(), result: 'paid' }), 'malformed'],
  [
    'a grant with an edit',
    () => ({ ...good(), as: 'edit', arguments: { euros: 1 }, grant: { scope: 'tool' } }),
    'malformed',
  ],
  ['a grant of another form', () => ({ ...good(), grant: { scope: 'everything' } }), 'malformed'],
  [
    'a grant with a predicate that is none',
    () => ({ ...good(), grant: { scope: 'tool', where: { op: 'eval', path: 'x' } } }),
    'malformed',
  ],
  ['an edit without arguments', () => ({ ...good(), as: 'edit' }), 'malformed'],
  [
    'an answer of 40,000 characters',
    () => ({ ...good(), as: 'answer', result: 'x'.repeat(40_000) }),
    'too_large',
  ],
  ['a list with one forgery', () => [good(), { ...good(), request: 'r9' }], 'unknown_request'],
  ['the same request twice', () => [good(), { ...good(), as: 'deny' }], 'malformed'],
];

describe('a forged decision', () => {
  test.each(FORGED)(
    '%s is refused with its reason, and leaves no trace',
    async (_, forged, reason) => {
      const refusal = await refusalOf(handle.executeUpdate('resolve', { args: [forged()] }));
      expect(refusal).toMatchObject({ type: 'Refused', details: [reason] });
      expect(desk.done).toEqual([]);
    },
  );

  test('leaves the request open, adds no update to the history, and a real decision counts once', async () => {
    const { events } = await handle.fetchHistory();
    const updates = (events ?? []).filter(
      (event) => event.workflowExecutionUpdateAcceptedEventAttributes,
    );
    expect(updates).toEqual([]);
    const first = await handle.executeUpdate('resolve', { args: [good()], updateId: 'd-1' });
    // The same decision under the same id gets the same answer; any other comes too late.
    expect(await handle.executeUpdate('resolve', { args: [good()], updateId: 'd-1' })).toEqual(
      first,
    );
    const late = await refusalOf(
      handle.executeUpdate('resolve', { args: [{ ...good(), as: 'deny', by: 'bob' }] }),
    );
    expect(late).toMatchObject({ type: 'Refused', details: ['decided'] });
    const { outcome } = await desk.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Paid.' });
    expect(desk.done).toEqual(['pay 7']);
  });
});

async function refusalOf(update: Promise<unknown>): Promise<unknown> {
  const error = await update.then(
    () => null,
    (reason: unknown) => reason,
  );
  return isObject(error) ? error['cause'] : error;
}
