import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { createClient } from '../../src/index.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { recordRun, replyCall, replyText, rerun, scriptedModel } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

test.each(['never', 'always'] as const)(
  'a run in which a call was undone is executed again without the undo (approval: %s)',
  async (approval) => {
    const rig = await createMemoryRig();
    const client = await createClient({
      client: rig.client,
      taskQueue: rig.taskQueue,
      home: rig.home,
    });
    const undone: string[] = [];
    const book = defineTool({
      name: 'book',
      description: 'Books.',
      effect: 'keyed',
      approval,
      input: z.object({}),
      execute: () => 'booked',
      undo: () => {
        undone.push('book');
      },
    });
    const desk = defineAgent({ name: 'desk', instructions: 'Help.', model: 'm', tools: [book] });
    const replies = [replyCall('book', {}), replyText('Booked.'), replyText('You are welcome.')];
    await rig.worker([desk], { models: { m: scriptedModel(replies) } });
    const run = await client.start(desk, 'Book.', { open: true });
    const until = async (holds: (status: RunStatus) => boolean): Promise<void> =>
      await expect.poll(async () => holds(await client.status(run))).toBe(true);
    const approve = async (): Promise<void> => {
      if (approval === 'never') return;
      await until(({ pending }) => pending.length > 0);
      const [open] = (await client.status(run)).pending;
      if (open === undefined) throw new Error('no request is open');
      await client.resolve(run, { request: open.id, digest: open.digest, as: 'approve' });
    };
    await approve();
    await until(({ status }) => status === 'waiting_message');
    await client.undo(run);
    await approve();
    await until(({ undoable = [] }) => undoable[0]?.state === 'undone');
    await client.send(run, 'Thanks.');
    await until(({ status, turn }) => status === 'waiting_message' && turn === 2);
    await client.close(run);
    await rig.end(rig.client.workflow.getHandle(run.id));
    const recording = await recordRun(client, run);
    expect(recording.runs[0]?.messages.map(({ text }) => text)).toContain(
      '[a person has undone call_1_1_0: book]',
    );
    const again = await rerun(recording, { agent: desk });
    expect([again.divergence, again.outcome?.answer]).toEqual([null, 'You are welcome.']);
    expect(undone).toEqual(['book']);
    await client.disconnect();
    await rig.close();
  },
);
