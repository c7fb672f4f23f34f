import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { scriptedModel } from '../../src/testing/script.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { closeUpdate } from '../../src/workflows/messages/definitions.js';
import { watchedLog } from '../support/canary-watch.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
let from = 0;
beforeAll(async () => {
  rig = await createRig();
});
beforeEach(async () => {
  await rig.stopWorkers();
  from = watchedLog.length;
});
afterAll(async () => await rig.close());

/** The warnings about a run since the test began. */
function warnings(id: string): readonly string[] {
  return watchedLog
    .slice(from)
    .flatMap(({ level, message, meta }) =>
      level === 'WARN' && meta?.['workflowId'] === id ? [message] : [],
    );
}

/** The warnings about functions that threw in a run. */
function thrown(id: string): readonly string[] {
  return warnings(id).filter((text) => text.includes(' threw: '));
}

describe('the log of a worker', () => {
  test('names each failed turn once, also in an open run that is replayed', async () => {
    const decide = async (): Promise<{ answer: string }> => {
      throw new Error('the secret of the message');
    };
    const bot = defineAgent({ name: 'bot', instructions: 'x', model: 'm', decide });
    const models = { m: scriptedModel([]) };
    // Each workflow task replays the run.
    await rig.worker([bot], { models, maxCachedWorkflows: 0 });
    const handle = await rig.start({ agent: 'bot', message: 'one', open: true });
    await outcomeOf(handle, 1);
    await ask(handle, 'two');
    await outcomeOf(handle, 2);
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await rig.end(handle);
    const single = await rig.run({ agent: 'bot', message: 'three' });
    const turns = (id: string): readonly string[] =>
      warnings(id).filter((text) => /^turn |Workflow/.test(text));
    await vi.waitFor(() =>
      expect(turns(single.handle.workflowId)).toEqual(['turn 1 of agent "bot" failed: error']),
    );
    expect(turns(handle.workflowId)).toEqual([
      'turn 1 of agent "bot" failed: error',
      'turn 2 of agent "bot" failed: error',
    ]);
  });

  test('names a start that is refused once, with the reason', async () => {
    const bot = defineAgent({ name: 'bot', instructions: 'x', model: 'm' });
    await rig.worker([bot], { models: { m: scriptedModel([]) } });
    const { handle } = await rig.run({ agent: 'bot', message: 'x', args: { order: 1 } });
    await vi.waitFor(() => expect(warnings(handle.workflowId)).not.toEqual([]));
    expect(warnings(handle.workflowId)).toEqual([
      expect.stringMatching(/^the start of agent "bot" failed: input: args: /),
    ]);
  });

  test("names the user's own frames of each function that throws, and no others", async () => {
    const fail = (what: string): never => {
      throw new Error(`${what} is broken`);
    };
    const tool = defineTool({
      name: 'lend',
      description: 'lends',
      effect: 'once',
      input: z.object({}),
      execute: async function lend() {
        return fail('the tool');
      },
    });
    const agents = [
      defineAgent({ name: 'tooled', instructions: 'x', model: 'm', tools: [tool] }),
      defineAgent({
        name: 'finder',
        instructions: 'x',
        model: 'm',
        retrieve: () => fail('the retriever'),
      }),
      defineAgent({
        name: 'keeper',
        instructions: 'x',
        model: 'm',
        remember: () => fail('the memory'),
      }),
      defineAgent({ name: 'decider', instructions: 'x', decide: () => fail('the decision') }),
      defineGraph({
        name: 'graph',
        state: z.object({}),
        nodes: ({ run }) => ({ first: run({ run: () => fail('the node') }) }),
      }).wire({ start: 'first', edges: { first: 'end' } }),
    ];
    const models = {
      m: scriptedModel([replyCall('lend', {}), replyText('Done.'), replyText('Done.')]),
    };
    await rig.worker(agents, { models });
    for (const [agent, what, input] of [
      ['tooled', 'the tool', { message: 'go' }],
      ['finder', 'the retriever', { message: 'go' }],
      ['keeper', 'the memory', { message: 'go' }],
      ['decider', 'the decision', { message: 'go' }],
      ['graph', 'the node', { input: {} }],
    ] as const) {
      const { handle } = await rig.run({ agent, ...input });
      const { workflowId } = handle;
      // The SDK passes entries on with a delay.
      await vi.waitFor(() => expect(thrown(workflowId)).not.toEqual([]));
      const [line = '', ...more] = thrown(workflowId);
      expect(line).toMatch(
        new RegExp(
          `threw: ${what} is broken; at fail \\(.*worker-logs\\.test\\.ts:\\d+:\\d+\\), at `,
        ),
      );
      for (const text of [line, ...more]) {
        expect(text).not.toMatch(/node_modules|node:internal|\/src\//);
      }
    }
  });
});
