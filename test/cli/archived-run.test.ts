import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { inbox } from '../../src/cli/commands/list.js';
import { pause } from '../../src/cli/commands/pause.js';
import { attach } from '../../src/cli/commands/run.js';
import { graph } from '../../src/cli/commands/graph.js';
import { ownedMemo, type RunsAccess } from '../../src/cli/mcp/owner.js';
import { openClient } from '../../src/client/create-client.js';
import { createRunInput, startRun } from '../../src/updates/start.js';
import { clerk } from '../support/clerk.js';
import { obedientModel } from '../support/conversation.js';
import { forgetSegments } from '../support/forget-run.js';
import { runInProcess } from '../support/in-process.js';
import { connectToRuns } from '../support/runs-client.js';
import { createRig, type Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

const OWNER = 'the secret of one server';

let rig: Rig;
/** A run that the MCP server started, and that Temporal has deleted. */
const id = `archived-${randomUUID()}`;
beforeAll(async () => {
  rig = await createRig();
  const segment = { steps: 1, bytes: 2_000_000 };
  await rig.worker([clerk()], { models: { m: obedientModel() }, segment });
  const input = createRunInput('clerk', { message: 'steps 2 then done', archive: true });
  const memo = ownedMemo(OWNER, id);
  await startRun(rig.client, input, { id, taskQueue: rig.taskQueue, memo });
  await rig.client.workflow.getHandle(id).result();
  rig.exempt('the test deletes it', id);
  const segments = (await segmentsOf(rig.client, id)).map(({ runId }) => runId);
  if (segments.length < 2) throw new Error('the run has only one segment');
  await forgetSegments(rig.client, id, segments);
}, 120_000);
afterAll(async () => await rig.close());

interface Answer {
  readonly isError?: boolean | undefined;
  readonly structuredContent?: unknown;
}

async function askServer(given: Pick<RunsAccess, 'allRuns'>, owner: string): Promise<Answer[]> {
  const client = await connectToRuns(rig, { owner: async () => owner, ...given });
  try {
    const tools = ['agent_status', 'agent_result'];
    return await Promise.all(
      tools.map((name) => client.callTool({ name, arguments: { id } }) as Promise<Answer>),
    );
  } finally {
    await client.close();
  }
}

test('the MCP server reads its own archived runs, and no other server’s', async () => {
  for (const answers of [
    await askServer({ allRuns: false }, OWNER),
    await askServer({ allRuns: true }, 'another'),
  ]) {
    for (const { isError, structuredContent } of answers) {
      expect(isError ?? false).toBe(false);
      expect(JSON.stringify(structuredContent)).toContain('"reason":"answer"');
    }
  }
  const foreign = await askServer({ allRuns: false }, 'another');
  expect(foreign.map(({ isError }) => isError)).toEqual([true, true]);
});

test('methods of a client that need the run say that it is deleted, and what reads it', async () => {
  const client = await openClient({ client: rig.client, home: rig.home, env: {} });
  const first = async (events: AsyncIterable<unknown>): Promise<void> => {
    for await (const _ of events) return;
  };
  const decision = { request: 'r1', digest: 'x', as: 'deny' } as const;
  const said =
    `the server has deleted run "${id}", which has ended; ` +
    'client.status, client.transcript, and client.result read it from the archive';
  const calls = [
    client.request(id, 'r1'),
    client.cancel(id),
    client.pause(id),
    client.resolve(id, decision),
    client.send(id, 'x'),
    first(client.events(id)),
    first(client.stream(id)),
  ];
  const errors = await Promise.all(calls.map((call) => call.catch((error: unknown) => error)));
  expect(errors.map((error) => (error instanceof Error ? error.message : error))).toEqual(
    calls.map(() => said),
  );
  await expect(client.request(`${id}-x`, 'r1')).rejects.toThrow(`there is no run "${id}-x"`);
});

test('a run is drawn from the archive', async () => {
  const place = {
    address: inject('temporalAddress'),
    home: rig.home,
    taskQueue: rig.taskQueue,
  };
  const { stdout, stderr } = await runInProcess(graph, { run: id }, place);
  expect(stdout).toContain('n0 -->|"text"| finish');
  expect(stderr).toContain('The server has deleted run');
});

test('commands that need an open run say that it is deleted, and where it can be read', async () => {
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue: rig.taskQueue };
  const said = `the server has deleted run ${id}, which has ended; read it from the archive with: `;
  await Promise.all([
    expect(runInProcess(attach, { id, wait: true }, place)).rejects.toThrow(said),
    expect(runInProcess(inbox, { id }, place)).rejects.toThrow(said),
    expect(runInProcess(pause, { id }, place)).rejects.toThrow(said),
  ]);
  const unknown = runInProcess(attach, { id: `${id}-x`, wait: true }, place);
  await expect(unknown).rejects.toThrow(`there is no run "${id}-x"`);
});
