import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { shownReason } from '../../src/core/state/status-text.js';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { list, type ListOptions } from '../../src/cli/commands/list.js';
import { createClient } from '../../src/index.js';
import type { RunList } from '../../src/client/list.js';
import type { RunRow } from '../../src/client/run-row.js';
import { ModelError, type Model } from '../../src/models/model.js';
import { replyText } from '../../src/testing/replies.js';
import { createGate } from '../../src/testing/play.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

const address = inject('temporalAddress');
const gate = createGate();
/** Unique on the server, which other tests use too. */
const name = `agent-${randomUUID()}`;
let rig: Rig;
let agent: Agent;

/** Acts on the message. */
const model: Model = {
  async call({ messages }, { signal }) {
    const text = messages[0]?.text;
    if (text === 'hold') await gate.wait(signal);
    if (text === 'keyless') throw new ModelError('no', { kind: 'credentials', type: 'http_401' });
    return replyText('hello');
  },
};

/** Starts four runs and brings each into a different state. */
async function fourRuns(client: Client, prefix: string): Promise<void> {
  const start = async (suffix: string, message: unknown) =>
    await client.workflow.start('agent', {
      taskQueue: rig.taskQueue,
      workflowId: `${prefix}-${suffix}`,
      args: [{ agent: name, message }],
    });
  const done = await start('done', 'say hello');
  const refused = await start('refused', 7);
  await Promise.allSettled([done.result(), refused.result()]);
  const blocked = await start('blocked', 'keyless');
  const ended = await start('terminated', 'hold');
  await vi.waitFor(
    async () => {
      expect(await blocked.query('status')).toMatchObject({ status: 'blocked' });
      expect(await ended.query('status')).toMatchObject({ status: 'working' });
    },
    { timeout: 20_000, interval: 50 },
  );
  await ended.terminate();
}

beforeAll(async () => {
  rig = await createRig();
  agent = defineAgent({ name, instructions: 'x', model: 'm' });
  await rig.worker([agent], { models: { m: model } });
});
afterAll(async () => {
  gate.barrier.release();
  await rig.close();
});

interface Where {
  readonly namespace?: string;
  readonly json?: boolean;
}

async function ask(options: Partial<ListOptions>, where: Where = {}): Promise<CommandOutput> {
  const place = { address, home: rig.home, taskQueue: rig.taskQueue, ...where };
  return await runInProcess(list, { limit: 50, ...options }, place);
}

async function rows(options: Partial<ListOptions>, where: Where = {}): Promise<readonly RunRow[]> {
  const { stdout } = await ask(options, { json: true, ...where });
  expect(stdout.split('\n')).toHaveLength(1);
  const page = JSON.parse(stdout) as RunList;
  return page.rows;
}

/** Waits until the server lists the four runs: it does so some time after they have ended. */
async function listed(where: Where = {}): Promise<void> {
  await vi.waitFor(
    async () => expect(states(await rows({ agent: name }, where))).toEqual(EXPECTED),
    { timeout: 20_000, interval: 100 },
  );
}

/** Indexes the rows by the last part of their id. */
function states(found: readonly RunRow[]): Record<string, unknown> {
  return Object.fromEntries(
    found.map(({ id, agent: who, status, reason, closedAt }) => [
      id.split('-').at(-1),
      { agent: who, status, reason, open: closedAt === null },
    ]),
  );
}

const EXPECTED = {
  done: { agent: name, status: 'completed', reason: 'answer', open: false },
  refused: { agent: name, status: 'failed', reason: 'input', open: false },
  blocked: { agent: name, status: 'blocked', reason: 'credentials', open: true },
  terminated: { agent: name, status: 'failed', reason: 'terminated', open: false },
};

describe('with the search attributes in the namespace', () => {
  const prefix = `list-${randomUUID()}`;
  beforeAll(async () => {
    await fourRuns(rig.client, prefix);
    await listed();
  });

  test('each run of an agent is one row, newest first, in any state', async () => {
    const found = await rows({ agent: name });
    expect(states(found)).toEqual(EXPECTED);
    const none = await ask({ agent: name, tag: ['none'] });
    expect(none.stderr).toContain('No runs match.');
    expect(none.stderr).not.toContain('--agent');
    const starts = found.map(({ startedAt }) => Date.parse(startedAt));
    expect(starts).toEqual(starts.toSorted((a, b) => b - a));
    expect(Object.keys(found[0] ?? {})).toEqual([
      'id',
      'agent',
      'status',
      'reason',
      'runId',
      'taskQueue',
      'startedAt',
      'closedAt',
      'tags',
    ]);
  });

  test.each([
    ['blocked', ['blocked']],
    ['working', []],
    ['ended', ['done', 'refused', 'terminated']],
    ['completed', ['done']],
    ['failed', ['refused', 'terminated']],
    ['stopped', []],
  ])('--status %s lists %j', async (status, left) => {
    expect(Object.keys(states(await rows({ agent: name, status }))).toSorted()).toEqual(left);
  });

  test('--max lists fewer runs, and --cursor the next page, as the message says', async () => {
    const first = await ask({ agent: name, max: 3 }, { json: true });
    const page = JSON.parse(first.stdout) as RunList;
    expect(page.rows).toHaveLength(3);
    const next = `list --agent ${name} --max 3 --cursor ${page.cursor}`;
    expect(first.stderr).toContain(`List the next page with: npx perdure ${next}`);
    const cursor = page.cursor ?? '';
    const rest = await ask({ agent: name, max: 3, cursor }, { json: true });
    const last = JSON.parse(rest.stdout) as RunList;
    expect(last).toMatchObject({ cursor: null, rows: [expect.anything()] });
    expect(rest.stderr).not.toContain('more runs');
    expect(states([...page.rows, ...last.rows])).toEqual(EXPECTED);
    await expect(ask({ agent: `${name}-x`, cursor })).rejects.toThrow(
      '--cursor: expected the cursor of a list with the same filter',
    );
  });

  test('filters of the server and of the client can be combined', async () => {
    const all = { agent: name, status: 'ended', since: '1h', idPrefix: `${prefix}-` };
    expect(Object.keys(states(await rows(all))).toSorted()).toEqual([
      'done',
      'refused',
      'terminated',
    ]);
    expect(await rows({ ...all, before: '1h', since: '2h' })).toEqual([]);
    expect(await rows({ ...all, tag: ['none'] })).toEqual([]);
    expect(await rows({ ...all, idPrefix: `${prefix}_` })).toEqual([]);
  });

  test('the table, --json, and client.list have the same fields and words, without the reason of a last turn', async () => {
    const { stdout, stderr, code } = await ask({ agent: name });
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
    const json = await rows({ agent: name });
    const client = await createClient({ address });
    try {
      expect((await client.list({ agent: name })).rows).toEqual(json);
    } finally {
      await client.disconnect();
    }
    const [header = '', ...lines] = stdout.split('\n').map((line) => line.split(/ {2,}/));
    expect(header).toEqual(['ID', 'AGENT', 'STATUS', 'REASON', 'STARTED AT', 'CLOSED AT']);
    const time = (iso: string | null): string => (iso === null ? '-' : localTime(iso));
    expect(lines).toEqual(
      json.map(({ id, agent: who, status, reason, startedAt, closedAt }) => [
        id,
        who,
        status,
        shownReason({ status, reason }) ?? '-',
        time(startedAt),
        time(closedAt),
      ]),
    );
  });
});

/** Formats a time as the table does, to the second. */
function localTime(iso: string): string {
  return new Date(iso).toLocaleString('sv-SE');
}

describe('without the search attributes', () => {
  const namespace = `bare-${randomUUID()}`;

  test('the rows are the same, read from the histories', async () => {
    const create = ['operator', 'namespace', 'create', '-n', namespace, '--retention', '72h'];
    await promisify(execFile)(inject('temporalCli'), [...create, '--address', address]);
    const client = new Client({ connection: rig.client.connection, namespace });
    await vi.waitFor(
      async () =>
        await client.workflowService.describeTaskQueue({ namespace, taskQueue: { name } }),
      { timeout: 30_000, interval: 100 },
    );
    await rig.worker([agent], { models: { m: model }, namespace });
    await fourRuns(client, 'bare');
    await listed({ namespace });
    expect(states(await rows({ status: 'blocked' }, { namespace }))).toEqual({
      blocked: EXPECTED.blocked,
    });
    const since = { agent: name, idPrefix: 'bare-', since: '1h' };
    expect(states(await rows({ ...since, status: 'completed' }, { namespace }))).toEqual({
      done: EXPECTED.done,
    });
  });
});

describe('an invalid list command', () => {
  test.each([
    [{ max: 0 }, '--max: expected a whole number from 1, got 0'],
    [{ status: 'odd' }, '--status: expected one of working, waiting_message'],
    [{ since: 'soon' }, '--since: expected a time, got "soon"; give ISO 8601 such as'],
    [{ before: '3x' }, '--before: expected a time, got "3x"; give'],
    [{ since: '1h', before: '2h' }, '--before: expected a time after --since, which is "1h", got'],
    [{ tag: [`a' OR 'b`] }, '--tag: expected a text of 1 to 1000 characters without quotes'],
    [{ idPrefix: 'a\\' }, '--id-prefix: expected a text of 1 to 1000 characters without quotes'],
    [{ cursor: 'abc' }, '--cursor: expected the cursor of a list, got "abc"; copy it completely'],
  ])('%j is refused', async (options, message) => {
    await expect(ask(options)).rejects.toThrow(message);
  });

  test('a root and a tag that no run has are named, with the nearest ones that exist', async () => {
    const run = `root-${randomUUID()}`;
    const tag = `customer=${run}`;
    const args = [{ agent: name, message: 'hi', tags: [tag] }];
    const started = { taskQueue: rig.taskQueue, workflowId: run, args };
    await (await rig.client.workflow.start('agent', started)).result();
    const found = async (): Promise<string> => (await ask({ tag: [tag] }, { json: true })).stdout;
    // The server lists a run some time after it has ended.
    await expect.poll(found).toContain(run);
    const wrong = await ask({ root: `${run}x`, tag: [`${tag}x`] });
    expect({ code: wrong.code, stdout: wrong.stdout }).toEqual({ code: 0, stdout: '' });
    expect(wrong.stderr).toContain(`--root: there is no run "${run}x" (nearest: ${run}`);
    expect(wrong.stderr).toContain(`--tag: no run has the tag "${tag}x" (nearest: ${tag}`);
    const far = await ask({ root: 'elsewhere entirely', tag: ['elsewhere entirely'] });
    expect(far.stderr).toContain('--root: there is no run "elsewhere entirely".');
    // Among runs of other tests, one may be unreadable; it could have the tag.
    const other = await ask({ idPrefix: run, tag: [tag], status: 'failed' });
    expect(other.stderr).toContain('No runs match.');
    expect(other.stderr).not.toContain('--tag: no run');
  });

  test('an agent without runs is not an error', async () => {
    const { stdout, stderr, code } = await ask({ agent: "o'nobody" });
    expect({ stdout, code }).toEqual({ stdout: '', code: 0 });
    expect(stderr).toContain('No runs match. A run that the server has deleted is in no list');
    expect(stderr).toContain(
      `--agent: neither the configuration nor a run has agent "o'nobody" (the configuration has: files).`,
    );
    // Without a configuration, there is the agent of files.
    expect((await ask({ agent: 'fils' })).stderr).toContain('"fils" (nearest: files).');
    expect((await ask({ agent: 'files', tag: ['none'] })).stderr).not.toContain('--agent');
  });
});
