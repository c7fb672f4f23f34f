import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import { createProjector, project } from '../../src/history/projection.js';
import { replyCall, replyCalls, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { getOutcome } from '../../src/core/state/turn.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createMemoryRig();
});
afterAll(async () => await rig.close());

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({ at: z.string() }),
  effect: 'read',
  execute: ({ at }) => `seen ${at}`,
});

test('a projector gives the same view after each event as a projection of the events so far', async () => {
  const model = scriptedModel([
    replyCalls([
      { name: 'look', arguments: { at: 'a' } },
      { name: 'look', arguments: { at: 'b' } },
    ]),
    replyCall('look', { at: 'c' }),
    replyText('done'),
  ]);
  const agent = defineAgent({ name: 'a', instructions: 'look', model: 'm', tools: [look] });
  await rig.worker([agent], { models: { m: model } });
  const { history, outcome } = await rig.run({ agent: 'a', message: 'look' });
  const events = (history.events ?? []).map(decodeEvent);
  const projector = createProjector();
  const views = events.map((event) => {
    projector.push(event);
    return projector.view();
  });
  expect(views).toEqual(events.map((_, index) => project(events.slice(0, index + 1))));
  const last = views.at(-1);
  expect(last?.state && getOutcome(last.state)).toEqual(outcome);
  expect(last?.lastEvent).toBe(events.length);
  expect(Math.max(...views.map(({ inFlight }) => inFlight.size))).toBe(2);
  expect(last?.inFlight.size).toBe(0);
});
