import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import { partsOfClient } from '../../src/client/create-client.js';
import { createClient } from '../../src/index.js';
import { type ListFilter, matchesFilter } from '../../src/client/list-filter.js';
import { listRuns } from '../../src/client/list.js';
import { clerk, clientOf } from '../support/clerk.js';
import { obedientModel } from '../support/conversation.js';
import { createRig, type Rig } from '../support/rig.js';

/** Unique on the server, which other tests use too. */
const agent = `lister-${randomUUID()}`;
const prefix = `list_${randomUUID()}`;
let rig: Rig;
let client: PerdureClient;

/** Starts an open run and returns its id. */
async function start(suffix: string, tags?: readonly string[]): Promise<string> {
  const id = `${prefix}-${suffix}`;
  await client.start(agent, { open: true, id, ...(tags && { tags }) });
  return id;
}

/**
 * By agent and prefix: of each run that has no search attributes yet, a list asks the server for more, and
 * other tests leave many.
 */
const ours = { agent, idPrefix: prefix };

/** Whether a row is of these tests: a list also has runs of others of which the agent cannot be read. */
const isOurs = ({ id }: { readonly id: string }): boolean => id.startsWith(prefix);

/** Returns the last parts of the ids of a page, in the order of the alphabet. */
async function found(filter: Partial<ListFilter>): Promise<readonly string[]> {
  const { rows } = await client.list({ ...ours, ...filter });
  return rows
    .filter(isOurs)
    .map(({ id }) => id.split('-').at(-1) ?? '')
    .toSorted();
}

/** Returns the pages of a list, and checks that none has more rows than the limit. */
async function pages(filter: ListFilter, limit: number): Promise<readonly string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.list({ ...ours, ...filter, limit, cursor });
    expect(page.rows.length).toBeLessThanOrEqual(limit);
    ids.push(...page.rows.map(({ id }) => id.split('-').at(-1) ?? ''));
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return ids.toSorted();
}

/** Waits until the server lists every run as waiting for a message. */
async function allWaiting(): Promise<void> {
  const waiting = { ...ours, status: 'waiting_message' } as const;
  await vi.waitFor(async () => expect((await client.list(waiting)).rows).toHaveLength(5), {
    timeout: 20_000,
    interval: 50,
  });
}

const TAGS: Readonly<Record<string, readonly string[] | undefined>> = {
  a1: ['red', '100%'],
  a2: ['red', 'blue'],
  a3: ['blue'],
  b1: ['red'],
  b2: undefined,
};

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
  await rig.worker([clerk(agent)], { models: { m: obedientModel() } });
  for (const [suffix, tags] of Object.entries(TAGS)) await start(suffix, tags);
  await allWaiting();
});
afterAll(async () => {
  for (const suffix of Object.keys(TAGS)) await client.cancel(`${prefix}-${suffix}`);
  await client.disconnect();
  await rig.close();
});

describe('the filters of a list', () => {
  test.each<[string, Partial<ListFilter>, readonly string[]]>([
    ['agent', { idPrefix: undefined }, ['a1', 'a2', 'a3', 'b1', 'b2']],
    ['tag', { tag: 'red' }, ['a1', 'a2', 'b1']],
    ['a part of a tag', { tag: 're' }, []],
    ['a tag with a wildcard', { tag: '100%' }, ['a1']],
    ['prefix', { idPrefix: `${prefix}-a` }, ['a1', 'a2', 'a3']],
    ['wildcards in a prefix', { idPrefix: prefix.replace('_', '%') }, []],
    ['one character for another', { idPrefix: prefix.replace('list', 'l_st') }, []],
    ['tag and prefix', { tag: 'red', idPrefix: `${prefix}-a` }, ['a1', 'a2']],
    ['tag and status', { tag: 'blue', status: 'waiting_message' }, ['a2', 'a3']],
    ['tag and another status', { tag: 'blue', status: 'completed' }, []],
    ['since', { since: '1h' }, ['a1', 'a2', 'a3', 'b1', 'b2']],
    ['before', { before: '1h' }, []],
    ['a future day', { since: new Date(Date.now() + 3_600_000) }, []],
  ])('%s', async (_, filter, expected) => {
    expect(await found(filter)).toEqual(expected);
  });

  test('since includes the start of a run, and before excludes it', async () => {
    const { rows } = await client.list({ idPrefix: `${prefix}-a3` });
    const startedAt = rows[0]?.startedAt ?? '';
    expect(rows[0]?.tags).toEqual(['blue']);
    expect(await found({ since: startedAt })).toEqual(['a3', 'b1', 'b2']);
    expect(await found({ before: new Date(startedAt) })).toEqual(['a1', 'a2']);
    expect(await found({ before: startedAt, tag: 'blue' })).toEqual(['a2']);
  });
});

describe('the pages of a list', () => {
  test.each([1, 2, 5, 7])('of at most %d rows contain every run once', async (limit) => {
    expect(await pages({}, limit)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2']);
    expect(await pages({ tag: 'red', since: '1h' }, limit)).toEqual(['a1', 'a2', 'b1']);
  });

  test('the last one has no cursor, and is not followed by an empty one', async () => {
    expect((await client.list({ ...ours, limit: 5 })).cursor).toBeNull();
    expect((await client.list({ ...ours, limit: 4 })).cursor).toEqual(expect.any(String));
  });

  test('a cursor is refused if it is damaged, or for another list', async () => {
    const { cursor } = await client.list({ ...ours, limit: 2 });
    const text = cursor ?? '';
    const damaged = 'cursor: expected the cursor of a list, got';
    const at = Math.floor(text.length / 2);
    const other = text[at] === 'A' ? 'B' : 'A';
    for (const bad of [text.slice(0, -8), `${text.slice(0, at)}${other}${text.slice(at + 1)}`]) {
      await expect(client.list({ ...ours, cursor: bad })).rejects.toThrow(damaged);
    }
    await expect(client.list({ ...ours, cursor: text, tag: 'red' })).rejects.toThrow(
      'cursor: expected the cursor of a list with the same filter and namespace, got',
    );
    expect((await client.list({ ...ours, cursor: text, limit: 9 })).rows).toHaveLength(3);
  });
});

describe('an invalid filter', () => {
  test.each<[Record<string, unknown>, string]>([
    [{ status: 'odd' }, 'status: expected one of working, waiting_message, waiting_decision,'],
    [{ since: '2026-13-01' }, 'since: expected a time, got "2026-13-01"; give ISO 8601 such as'],
    [
      { before: new Date(Number.NaN) },
      'before: expected a time, got an invalid date; give ISO 8601',
    ],
    [{ since: '1' }, 'since: expected a time, got "1"; give ISO 8601'],
    [{ since: '1h', before: '2h' }, 'before: expected a time after since, which is "1h", got "2h"'],
    [{ tag: `x' OR WorkflowId != 'y` }, 'tag: expected a text of 1 to 1000 characters without'],
    [{ tag: '' }, 'tag: expected a text of 1 to 1000 characters without quotes'],
    [{ idPrefix: `x" OR "` }, 'idPrefix: expected a text of 1 to 1000 characters without quotes'],
    [{ idPrefix: 'x\\' }, 'idPrefix: expected a text of 1 to 1000 characters without quotes'],
    [{ limit: 0 }, 'limit: expected a whole number from 1, got 0'],
    [{ tags: 'x' }, '"tags" is not an option; did you mean tag?'],
  ])('%j', async (filter, message) => {
    const refused = client.list(filter);
    await expect(refused).rejects.toMatchObject({ code: 'input' });
    await expect(refused).rejects.toThrow(message);
  });
});

test('a list without a limit is a page, and a server that does not answer is an error with a code', async () => {
  const { rows } = await client.list({ agent, limit: undefined });
  expect(rows.filter(isOurs)).toHaveLength(5);
  const connection = Connection.lazy({ address: '127.0.0.1:1', connectTimeout: 200 });
  const unreachable = new Client({ connection });
  await using stranger = await createClient({ client: unreachable, home: rig.home });
  await expect(stranger.list()).rejects.toMatchObject({ code: 'no_server' });
  await connection.close();
});

test('a list that its reader may not see is read in growing pages, until the reader leaves', async () => {
  const { client: temporal } = partsOfClient(client);
  const { namespace } = temporal.options;
  const query = `WorkflowId = '${prefix}-a1'`;
  const listed = await temporal.workflowService.listWorkflowExecutions({ namespace, query });
  const [one] = listed.executions;
  const sizes: number[] = [];
  let left = 5_000;
  // A server with that many runs, each of which looks like this one.
  const served = async ({ pageSize = 0 }: { readonly pageSize?: number }) => {
    sizes.push(pageSize);
    const executions = Array.from({ length: Math.min(pageSize, left) }, () => one);
    left -= executions.length;
    return { executions, nextPageToken: Buffer.from(left > 0 ? 'more' : '') };
  };
  const spied = vi
    .spyOn(temporal.workflowService, 'listWorkflowExecutions')
    .mockImplementation(served as never);
  const hidden = { sees: async () => false };
  expect(await listRuns(temporal, { limit: 1 }, hidden)).toEqual({ rows: [], cursor: null });
  expect(sizes).toEqual([32, 64, 128, 256, 512, 1_000, 1_000, 1_000, 1_000, 1_000]);
  sizes.length = 0;
  left = 5_000;
  const leave = new AbortController();
  const sees = async (): Promise<boolean> => {
    leave.abort(new Error('gone'));
    return false;
  };
  const { signal } = leave;
  await expect(listRuns(temporal, {}, { sees, signal })).rejects.toThrow('gone');
  expect(sizes).toHaveLength(1);
  spied.mockRestore();
});

test('a run whose agent cannot be read is in the list of each agent, and one of another agent is not', () => {
  const row = {
    id: 'a',
    runId: 'x',
    status: 'working',
    reason: null,
    startedAt: '2026-01-31T09:00:00Z',
    closedAt: null,
    taskQueue: 'q',
    tags: [],
  } as const;
  const matches = (fields: { agent: string | null; unreadable?: string }): boolean =>
    matchesFilter({ ...row, ...fields }, { agent: 'clerk' }, { since: null, before: null });
  expect(matches({ agent: null, unreadable: 'its memo cannot be read' })).toBe(true);
  expect(matches({ agent: 'other', unreadable: 'its memo cannot be read' })).toBe(false);
  expect(matches({ agent: null })).toBe(false);
});
