import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { list } from '../../src/cli/commands/list.js';
import { attach } from '../../src/cli/commands/run.js';
import { status } from '../../src/cli/commands/status.js';
import type { Command } from '../../src/cli/context.js';
import { watchBelow } from '../../src/cli/requests/below.js';
import { readRun } from '../../src/history/read-run.js';
import { runnableStatus } from '../../src/client/runnable-texts.js';
import { withSeenBelow } from '../../src/http/views.js';
import { ModelError, type Model } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { clientOf } from '../support/clerk.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
let hasKey = false;
const model: Model = {
  async call({ messages }) {
    const last = messages.at(-1);
    if (last?.role === 'tool') return replyText(`read: ${last.text}`);
    if (messages[0]?.text === 'ask the clerk') return replyCall('clerk', { message: 'hello' });
    if (!hasKey) throw new ModelError('no key', { kind: 'credentials', type: 'http_401' });
    return replyText('hi');
  },
};

beforeAll(async () => {
  rig = await createRig();
  const fixed = { instructions: 'x', model: 'm' };
  const clerk = defineAgent({ ...fixed, name: 'clerk', description: 'helps' });
  const boss = defineAgent({ ...fixed, name: 'boss', agents: [clerk] });
  await rig.worker([boss], { models: { m: model } });
});
afterAll(async () => await rig.close());

/** Visibility lags behind the history. */
const WITHIN = { timeout: 30_000, interval: 200 };

async function perdure<Options>(
  command: Command<Options>,
  options: Options,
): Promise<CommandOutput> {
  const place = {
    address: inject('temporalAddress'),
    home: rig.home,
    taskQueue: rig.taskQueue,
    json: false,
  };
  return await runInProcess(command, options, place);
}

test('a run whose called agent is blocked says so, with the run to look at', async () => {
  const { workflowId: id } = await rig.start({ agent: 'boss', message: 'ask the clerk' });
  const client = await clientOf(rig);
  await vi.waitFor(
    async () => expect((await client.status(id)).blockedBelow).toHaveLength(1),
    WITHIN,
  );
  const read = await client.status(id);
  const [blocked] = read.blockedBelow ?? [];
  expect(blocked).toMatchObject({ agent: 'clerk', reason: 'credentials' });
  expect(blocked?.run.startsWith(`${id}/`)).toBe(true);
  expect(blocked?.message).toContain('no key');

  await vi.waitFor(async () => {
    const { rows } = await client.list({ agent: 'boss' });
    expect(rows.find((row) => row.id === id)).toMatchObject({
      status: 'working',
      blockedBelow: [blocked?.run],
    });
  }, WITHIN);
  const table = await perdure(list, { agent: 'boss' });
  expect(table.stdout).toMatch(new RegExp(`^${id} +boss +working +blocked below `, 'm'));

  const lines = `A run that this run called is blocked (credentials), agent clerk:\n${blocked?.message}\n`;
  const shown = await perdure(status, { id });
  expect(shown.stdout).toContain(lines);
  expect(shown.stdout).toMatch(/^status +working \(blocked below\)$/m);
  expect(shown.stdout).toContain(`status ${blocked?.run}`);

  // A prompt between two watches does not show the lines again.
  const foundAt = new Map<string, number>();
  const { view: run } = await readRun(rig.client, id);
  const watch: Command<object> = {
    async run(context) {
      const over = new AbortController();
      let looks = 0;
      const view = () => {
        looks += 1;
        if (looks > 1) over.abort();
        return run;
      };
      const screen = { line: context.note };
      const how = { seen: new Set<string>(), joined: null, foundAt, screen, signal: over.signal };
      await watchBelow(context, rig.client, { id, view, ...how });
      return 0;
    },
  };
  expect((await perdure(watch, {})).stderr).toContain(lines.trimEnd());
  expect((await perdure(watch, {})).stderr).toBe('');

  const left = await perdure(attach, { id, wait: false });
  expect(left.code).toBe(4);
  expect(left.stderr).toContain(lines);
  expect(left.stderr).toContain(`After a fix, run: `);
  expect(left.stderr).toContain(`resume ${blocked?.run}`);

  const told = runnableStatus(read, (text) => `${text}!`);
  const shownBlocked = [{ ...blocked, message: `${blocked?.message}!` }];
  expect((await withSeenBelow(told, async () => true)).blockedBelow).toEqual(shownBlocked);
  expect(await withSeenBelow(told, async () => false)).not.toHaveProperty('blockedBelow');

  hasKey = true;
  expect((await client.result(id)).answer).toBe('read: hi');
  expect(await client.status(id)).not.toHaveProperty('blockedBelow');
});
