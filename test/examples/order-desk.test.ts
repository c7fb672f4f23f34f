import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadConfig } from '../../src/cli/input/load-config.js';
import { openAiModel } from '../../src/models/openai/model.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

let rig: Rig;
let stub: Stub;
beforeAll(async () => {
  [rig, stub] = [await createMemoryRig(), await startStub()];
  const folder = resolve('examples/order-desk');
  const { agents } = await loadConfig({ folder, env: {} });
  await rig.worker(agents, {
    models: { stub: Object.assign(openAiModel({ baseUrl: stub.baseUrl }), { price: FREE }) },
    env: { PERDURE_HOME: rig.home, PERDURE_MODEL: 'stub' },
  });
});
afterAll(async () => {
  await rig.close();
  await stub.close();
});
const FREE = { input: 0, cachedInput: 0, output: 0 };

test('the order desk looks an order up and refunds it once', async () => {
  const refund = { name: 'refund', arguments: { order: 17, euros: 40 } };
  stub.script(
    replyCalls([{ name: 'look_up_order', arguments: { order: 17 } }]),
    replyCalls([refund]),
    replyCalls([refund]),
    replyText('Order 17 is refunded.'),
  );
  const { outcome, projection } = await rig.run({ agent: 'desk', message: 'refund order 17' });
  expect(outcome).toMatchObject({ status: 'completed', toolCalls: 2 });
  const texts = projection.state?.transcript.messages.map(({ text }) => text) ?? [];
  expect(texts[4]).toBe('refunded 40 € for order 17');
  expect(texts[6]).toMatch(/identical to .* in this turn/);
  stub.assertConsumed();
});
