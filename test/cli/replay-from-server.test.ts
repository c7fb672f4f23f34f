import { randomUUID } from 'node:crypto';
import type { WorkflowService } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { msToTs } from '@temporalio/common/lib/time.js';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { replay, type ReplayOptions } from '../../src/cli/commands/replay.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { replayRuns } from '../../src/worker/bundle.js';
import { createGate } from '../../src/testing/play.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { budgetWorkflowId } from '../../src/updates/shared-limits.js';
import { Output, runHere } from '../support/command-here.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

const address = inject('temporalAddress');
const held = createGate();
/** The prefix of the ids of all runs of this file. */
const prefix = `replayed-${randomUUID()}`;
/** The id of a workflow that hands out a budget. */
const shared = budgetWorkflowId({ of: 'tenant', name: prefix, unit: 'tokens' });
const byPrefix = (rest: string): string => `WorkflowId STARTS_WITH '${prefix}-${rest}'`;
let rig: Rig;

const wait = defineTool({
  name: 'wait',
  description: 'waits',
  input: z.object({}),
  effect: 'read',
  async execute(_input, { signal }) {
    await held.wait(signal);
    return 'waited';
  },
});

beforeAll(async () => {
  rig = await createRig();
  const model = {
    call: async ({ messages }: { messages: readonly { text: string }[] }) =>
      messages[0]?.text === 'wait' ? replyCall('wait') : replyText('done'),
  };
  await rig.worker([defineAgent({ name: 'a', instructions: 'x', model: 'm', tools: [wait] })], {
    models: { m: model },
  });
  const { client, taskQueue } = rig;
  await (await rig.start({ agent: 'a', message: 'go' }, `${prefix}-own-done`)).result();
  await rig.start({ agent: 'a', message: 'wait' }, `${prefix}-own-held`);
  await held.barrier.reached;
  const start = async (type: string, rest: string, queue: string, ...args: readonly unknown[]) =>
    await client.workflow.start(type, {
      taskQueue: queue,
      workflowId: `${prefix}-${rest}`,
      args: [...args],
    });
  await start('agent', 'own-new', `nobody-${taskQueue}`, { agent: 'a', message: 'go' });
  for (const rest of ['changed', 'changed-again']) {
    rig.exempt('its workflow code is not that of the sources', `${prefix}-${rest}`);
  }
  // What a worker of a build with other workflow code would do.
  const other = `other-${taskQueue}`;
  await start('agent', 'changed', other, {});
  await completeTask(other, TIMER);
  await start('agent', 'changed-again', other, {});
  await completeTask(other, {
    commandType: 10,
    continueAsNewWorkflowExecutionCommandAttributes: {
      workflowType: { name: 'agent' },
      taskQueue: { name: other },
      input: { payloads: [defaultPayloadConverter.toPayload({})] },
    },
  });
  await completeTask(other, TIMER);
  await client.workflow.start('budget', { taskQueue, workflowId: shared, args: [] });
  await client.workflow.getHandle(shared).query('budget');
  const greeting = await start('greet', 'changed-greeting', other);
  await completeTask(other, { commandType: 4, completeWorkflowExecutionCommandAttributes: {} });
  await greeting.result();
  await listed();
});
afterAll(async () => {
  held.barrier.release();
  for (const rest of ['own-new', 'changed', 'changed-again']) {
    await rig.client.workflow.getHandle(`${prefix}-${rest}`).terminate();
  }
  await rig.close();
});

/** Waits until the server lists all runs. */
async function listed(): Promise<void> {
  await vi.waitFor(
    async () => {
      const query = `WorkflowId STARTS_WITH '${prefix}' OR WorkflowId = '${shared}'`;
      const { count } = await rig.client.workflow.count(query);
      expect(count).toBe(8);
    },
    { timeout: 30_000, interval: 100 },
  );
}

type Command = NonNullable<
  Parameters<WorkflowService['respondWorkflowTaskCompleted']>[0]['commands']
>[number];

/** Starts a timer of an hour. */
const TIMER: Command = {
  commandType: 3,
  startTimerCommandAttributes: {
    timerId: '1',
    startToFireTimeout: msToTs('1 h'),
  },
};

/** Answers the next workflow task of a queue with a command, as a worker does. */
async function completeTask(name: string, command: Command): Promise<void> {
  const { connection, workflowService, options } = rig.client;
  const { namespace } = options;
  const { taskToken } = await connection.withDeadline(Date.now() + 60_000, () =>
    workflowService.pollWorkflowTaskQueue({ namespace, taskQueue: { name } }),
  );
  await workflowService.respondWorkflowTaskCompleted({ namespace, taskToken, commands: [command] });
}

async function ask(options: Omit<ReplayOptions, 'file'>, json = false): Promise<CommandOutput> {
  return await runInProcess(replay, { file: [], ...options }, { home: rig.home, address, json });
}

describe('replay --from-server', () => {
  test('reports ended, working, and new runs as unchanged', async () => {
    const { code, stdout, stderr } = await ask({ fromServer: byPrefix('own') });
    expect(stdout.split('\n').toSorted()).toEqual([
      expect.stringMatching(/^same {7}replayed-\S+-own-done · \d+ events$/),
      expect.stringMatching(/^same {7}replayed-\S+-own-held · \d+ events$/),
      expect.stringMatching(/^same {7}replayed-\S+-own-new · 2 events$/),
    ]);
    expect(stderr).toContain('3 runs: 3 same, 0 different, 0 broken; this build can continue them');
    expect(code).toBe(0);
  });

  test('names the runs that this build cannot continue, and skips other workflows', async () => {
    const { code, stdout, stderr } = await ask({ fromServer: byPrefix('') });
    const different = stdout.split('\n').filter((line) => line.startsWith('different'));
    expect(different.toSorted()).toEqual([
      expect.stringMatching(/^different {2}replayed-\S+-changed · \[TMPRL1100\] /),
      expect.stringMatching(/^different {2}replayed-\S+-changed-again · \[TMPRL1100\] /),
    ]);
    expect(stderr).toContain('Skipped workflows that are not agent runs, by type: greet (1)');
    expect(stderr).toContain('Skipped 1 earlier segment: their runs have continued');
    expect(stderr).toContain('5 runs: 3 same, 2 different, 0 broken; do not deploy this build.');
    expect(code).toBe(1);
  });

  test('replays the workflows of budgets too', async () => {
    const { code, stdout, stderr } = await ask({ fromServer: `WorkflowId = '${shared}'` });
    expect(stdout).toMatch(/^same {7}budget:tokens:tenant:replayed-\S+ · \d+ events$/);
    expect(stderr).toContain(
      '1 workflow of budgets and rates: 1 same, 0 different, 0 broken; this build can continue them.',
    );
    expect(code).toBe(0);
  });

  test('prints one JSON document, and notes that it stopped early', async () => {
    const { code, stdout, stderr } = await ask({ fromServer: byPrefix('own'), max: 2 }, true);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ query: byPrefix('own'), same: 2, different: 0, more: true });
    expect(report.runs).toHaveLength(2);
    expect(report.runs[0]).toEqual({
      id: expect.stringContaining(prefix),
      runId: expect.any(String),
      ok: true,
      type: 'same',
      events: expect.any(Number),
    });
    expect(stderr).toContain('Stopped after 2 runs; there are more. Replay more with --max 4');
    expect(stderr).toContain('2 runs: 2 same, 0 different, 0 broken; not all were replayed.');
    expect(code).toBe(1);
  });

  test('without a query replays all running runs', async () => {
    // The real parser reads the option without a value, and the next one is not its value.
    const args = ['replay', '--from-server', '--json', '--address', address];
    const output = new Output();
    const code = await runHere(args, { env: { ...process.env, PERDURE_HOME: rig.home }, output });
    const { query, runs } = JSON.parse(output.stdout);
    expect(query).toBe(
      "ExecutionStatus = 'Running' AND (WorkflowType = 'agent' OR WorkflowId STARTS_WITH 'budget:' OR " +
        "WorkflowId STARTS_WITH 'rate:')",
    );
    const types = Object.fromEntries(
      (runs as { id: string; type: string }[]).map(({ id, type }) => [id, type]),
    );
    expect(types).toMatchObject({
      [`${prefix}-own-held`]: 'same',
      [`${prefix}-changed`]: 'different',
      [shared]: 'same',
    });
    expect(types).not.toHaveProperty(`${prefix}-own-done`);
    expect(code).toBe(1);
    // Runs of all tests on the server are replayed, and some have long histories.
  }, 240_000);

  test('succeeds with a note if no run matches', async () => {
    const { code, stdout, stderr } = await ask({ fromServer: byPrefix('nobody') });
    expect(stderr).toContain('No runs match; nothing was replayed.');
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
  });

  test.each([
    [
      { fromServer: 'AgentStatus ===' },
      /expected a visibility query of Temporal.*such as ExecutionStatus/,
    ],
    [
      { fromServer: 'Nonsense = 1' },
      /--from-server: expected a visibility query of Temporal, got Nonsense = 1/,
    ],
    [{ max: 0, fromServer: true } as const, /--max: expected a whole number from 1, got 0/],
    [
      {},
      /expected files with histories, got none; name some, or replay running runs with --from-server/,
    ],
  ])('refuses %j as usage', async (options, reason) => {
    await expect(ask(options)).rejects.toThrow(reason);
    await expect(ask(options)).rejects.toMatchObject({ name: 'UsageError' });
  });
});

test('a broken history does not prevent the replay of the next ones', async () => {
  const id = `${prefix}-own-done`;
  const history = await rig.client.workflow.getHandle(id).fetchHistory();
  const gap = { ...history, events: history.events?.filter((_, index) => index !== 5) ?? [] };
  const runs = [
    { id, history },
    { id: 'empty', history: { events: [] } },
    { id: 'gap', history: gap },
    { id, history },
  ];
  const types: string[] = [];
  for await (const { replayed } of replayRuns(runs)) types.push(replayed.type);
  expect(types).toEqual(['same', 'broken', 'broken', 'same']);
});
