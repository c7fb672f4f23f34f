import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { replyCalls, replyError } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { blocked } from '../support/conversation.js';
import { historyText } from '../support/history-text.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

const KEY = 'sk-canary-4f1c9e2a77b0';
const TOKEN = 'canary-token-91ab33c0de';

let rig: Rig;
let stub: Stub;
beforeAll(async () => {
  process.env['SHOP_TOKEN'] = TOKEN;
  [rig, stub] = [await createMemoryRig(), await startStub()];
  const leak = defineTool({
    name: 'leak',
    description: 'says what it must not say',
    input: z.object({ how: z.enum(['returns', 'throws']) }),
    effect: 'keyed',
    retry: { attempts: 1 },
    async execute({ how }) {
      if (how === 'throws') throw new Error(`refused with ${process.env['SHOP_TOKEN']}`);
      return { token: process.env['SHOP_TOKEN'] };
    },
  });
  const agent = defineAgent({ name: 'a', instructions: 'hi', model: 'm', tools: [leak] });
  await rig.worker([agent], {
    models: { m: { baseUrl: stub.baseUrl } },
    env: { PERDURE_HOME: rig.home, OPENAI_API_KEY: KEY },
  });
});
afterAll(async () => {
  delete process.env['SHOP_TOKEN'];
  await rig.close();
  await stub.close();
});

test('no key of the worker reaches the history, the status, or the memo', async () => {
  stub.script(
    replyCalls([
      { name: 'leak', arguments: { how: 'returns' } },
      { name: 'leak', arguments: { how: 'throws' } },
    ]),
    replyError(401, { message: `Incorrect API key provided: ${KEY}` }),
    replyError(400, { message: `could not process image of ${KEY}` }),
  );
  const handle = await rig.start({ agent: 'a', message: 'go' });
  const status = await blocked(handle);
  const described = await handle.describe();
  await handle.executeUpdate('resume');
  const { history, outcome } = await rig.end(handle);
  expect(outcome.status).toBe('failed');
  expect(stub.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
  const seen = [
    historyText(history),
    JSON.stringify([status, outcome, described.memo, described.searchAttributes]),
  ].join('\n');
  expect(seen).toContain('leak');
  expect(seen).not.toContain(KEY);
  expect(seen).not.toContain(TOKEN);
});
