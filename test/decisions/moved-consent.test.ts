import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { askRun } from '../../src/updates/ask.js';
import { askUpdate } from '../../src/workflows/messages/definitions.js';
import { createCalendar } from '../support/calendar.js';
import { clientOf } from '../support/clerk.js';
import { expectKeptReplays } from '../support/replays.js';
import { createDesk, type Desk } from '../support/requests.js';
import { segmentsOf } from '../support/segments.js';

let desk: Desk;
beforeEach(async () => {
  desk = await createDesk();
});
afterEach(async () => await desk.close());
afterAll(async () => await expectKeptReplays());

const { addEvent, assistant } = createCalendar(() => desk);
const deleting = (id: string): string =>
  JSON.stringify({
    actions: [
      { id: 'a1', tool: 'add_event', arguments: { title: `before ${id}` } },
      { id: 'a2', tool: 'delete_event', arguments: { id }, after: ['a1'] },
    ],
  });

/** Resets a run to its first workflow task; the server sends it later updates and signals again. */
async function reset({ workflowId }: WorkflowHandle): Promise<WorkflowHandle> {
  const { workflow, workflowService, options } = desk.rig.client;
  const { events } = await workflow.getHandle(workflowId).fetchHistory();
  const task = events?.find((event) => event.workflowTaskCompletedEventAttributes);
  const { runId } = await workflowService.resetWorkflowExecution({
    namespace: options.namespace,
    workflowExecution: { workflowId },
    reason: 'test',
    requestId: randomUUID(),
    // oxlint-disable-next-line typescript/no-explicit-any -- a Long, of which a number will do
    workflowTaskFinishEventId: Number(task?.eventId) as never,
  });
  return workflow.getHandle(workflowId, runId);
}

describe('a decision about a plan', () => {
  test('holds in the segments in which the plan is executed', async () => {
    await desk.work([assistant()], { segment: { steps: 1, bytes: 1e6 } });
    desk.script([deleting('e1'), 'Done.']);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'clean up', open: true });
    // A segment that is about to end takes no update; this tries the next one then.
    await askRun(desk.rig.client, handle.workflowId, { message: 'yes' });
    await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
    expect(desk.done).toEqual(['add before e1', 'delete e1']);
    const segments = await segmentsOf(desk.rig.client, handle.workflowId);
    const withEvent = (
      attributes:
        | 'workflowExecutionUpdateAcceptedEventAttributes'
        | 'activityTaskScheduledEventAttributes',
      name = '',
    ) =>
      segments.findLastIndex(({ history }) =>
        history.events?.some((event) => {
          const found = event[attributes];
          return found && (!('activityType' in found) || found.activityType?.name === name);
        }),
      );
    const decided = withEvent('workflowExecutionUpdateAcceptedEventAttributes');
    expect(withEvent('activityTaskScheduledEventAttributes', 'runTool')).toBeGreaterThan(decided);
    await handle.cancel();
    await desk.end(handle);
  });

  test.each(['message', 'decision'] as const)(
    'does not decide about the plan of a run that was reset: a %s',
    async (how) => {
      await desk.work([assistant()]);
      desk.script([deleting('e1'), 'Done.']);
      const { handle } = await desk.asked({ agent: 'assistant', message: 'clean up', open: true });
      if (how === 'decision') await desk.decide(handle, { as: 'approve' });
      else {
        const yes = { message: 'yes', sentAt: Date.now() };
        await handle.executeUpdate(askUpdate, { args: [yes] });
      }
      await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
      expect(desk.done).toEqual(['add before e1', 'delete e1']);
      desk.reset();
      desk.script([deleting('e2'), 'Done, too.']);
      const again = await reset(handle);
      const { pending } = await desk.statusWhere(again, ({ pending: open }) => open.length > 0);
      expect(pending).toMatchObject([{ kind: 'plan' }]);
      expect(desk.done).toEqual([]);
      await desk.decide(again, { as: 'deny' });
      await again.cancel();
      await desk.end(again);
      expect(desk.done).toEqual([]);
    },
  );

  test('does not decide about the same plan of a fork', async () => {
    await desk.work([assistant()]);
    const client = await clientOf(desk.rig);
    desk.script([deleting('e1')]);
    const first = await desk.asked({ agent: 'assistant', message: 'clean up' });
    desk.script([deleting('e1'), 'Left alone.']);
    const fork = await client.fork(first.handle.workflowId, { message: 'clean up' });
    const handle = desk.rig.client.workflow.getHandle(fork.id);
    await desk.statusWhere(handle, ({ status }) => status === 'waiting_decision');
    const [{ id: request, digest } = { id: '', digest: '' }] = first.requests;
    const answers = { request, digest };
    await expect(client.resolve(fork.id, { ...answers, as: 'approve' })).rejects.toMatchObject({
      reason: 'wrong_digest',
    });
    await expect(client.send(fork.id, { message: 'yes', answers })).rejects.toMatchObject({
      reason: 'wrong_digest',
    });
    await desk.decide(handle, { as: 'deny' });
    expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Left alone.' });
    expect(desk.done).toEqual([]);
    await first.handle.cancel();
    await desk.end(first.handle);
    await client.disconnect();
  });
});

describe('an approved call', () => {
  const open = defineTool({
    name: 'open_page',
    description: 'Opens a page at the caller.',
    input: z.object({ page: z.string() }),
    effect: 'keyed',
  });
  const reader = (then: 'ask' | 'deny') =>
    defineAgent({
      name: 'reader',
      instructions: 'x',
      model: 'script',
      tools: [addEvent, open],
      rules: [{ tool: '*', then }],
    });

  test.each([
    { tool: 'open_page', given: { page: 'p' } },
    { tool: 'add_event', given: { title: 'x' } },
  ])('is not made if the agent denies it since: $tool', async ({ tool, given }) => {
    await desk.work([reader('ask')]);
    desk.script([{ [tool]: given }, 'Not done.']);
    const { handle, requests } = await desk.asked({ agent: 'reader', message: 'go' });
    expect(requests).toMatchObject([{ kind: 'approval', tool }]);
    await desk.rig.stopWorkers();
    await desk.work([reader('deny')]);
    await desk.decide(handle, { as: 'approve' });
    expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Not done.' });
    expect(desk.lastResults()).toMatchObject([expect.stringContaining('denied')]);
    expect(desk.done).toEqual([]);
  });
});
