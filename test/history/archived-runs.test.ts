import { randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { exportRun, status } from '../../src/cli/commands/status.js';
import { fork } from '../../src/cli/commands/run.js';
import { transcript } from '../../src/cli/commands/transcript.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import type { RunStatus } from '../../src/core/state/status.js';
import type { TurnLog } from '../../src/history/run-transcript.js';
import { ModelError, type ModelRequest } from '../../src/models/model.js';
import { clerk, clientOf } from '../support/clerk.js';
import { replyTo } from '../support/conversation.js';
import { readArchivedSegment } from '../../src/history/read-run.js';
import { openStores } from '../../src/storage/file-stores.js';
import { graphAgent, node, RUN } from '../support/graph-agent.js';
import { forgetSegments } from '../support/forget-run.js';
import { runInProcess } from '../support/in-process.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

/** What a reader returns, while the server has the run and after it has deleted it. */
interface Reading {
  readonly results: readonly Outcome[];
  readonly status: RunStatus;
  readonly transcript: Awaited<ReturnType<PerdureClient['transcript']>>;
  readonly calls: Awaited<ReturnType<PerdureClient['calls']>>;
  readonly turns: TurnLog;
}

const id = `archived-${randomUUID()}`;
/** A run whose end is not in the archive: it was terminated. */
const cut = `archived-${randomUUID()}`;
const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
/** A graph without a model. */
const steps = graphAgent(
  {
    start: 'a',
    nodes: names.map((name, at) => {
      const next = names[at + 1];
      return node(name, RUN, { done: next ?? 'end' });
    }),
  },
  Object.fromEntries(names.map((name) => [name, async () => ({ patch: {} })])),
  { name: 'steps', model: 'm' },
);
let rig: Rig;
let client: PerdureClient;
let before: Reading;
let segments: readonly { readonly runId: string; readonly events: number }[];

async function read(): Promise<Reading> {
  const results = [1, 2, 3, undefined].map((turn) =>
    client.result(id, { ...(turn !== undefined && { turn }) }),
  );
  return {
    results: await Promise.all(results),
    status: await client.status(id),
    transcript: await client.transcript(id),
    calls: await client.calls(id),
    turns: await client.turns(id),
  };
}

const place = () => ({
  client: rig.client,
  address: inject('temporalAddress'),
  home: rig.home,
  taskQueue: rig.taskQueue,
});

beforeAll(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
  let failures = 1;
  const model = {
    call: async (request: ModelRequest) => {
      const isSecond = request.messages.some(({ text }) => text === 'steps 1 second');
      if (isSecond && failures > 0) {
        failures -= 1;
        throw new ModelError('slow down', {
          kind: 'retry',
          type: 'rate_limit',
          retryAfterMs: 1,
        });
      }
      return replyTo(request);
    },
  };
  const agent = clerk('clerk', { settings: { temperature: 0.5 } });
  await rig.worker([agent, steps], {
    models: { m: model },
    segment: { steps: 3, bytes: 2_000_000 },
  });
  for (const [turn, text] of ['first', 'second', 'third'].entries()) {
    await client.send(id, `steps 1 ${text}`, { start: { agent: 'clerk' } });
    await client.result(id, { turn: turn + 1 });
  }
  await client.close(id);
  await rig.client.workflow.getHandle(id).result();
  before = await read();
  segments = (await segmentsOf(rig.client, id)).map(({ runId, history }) => ({
    runId,
    events: history.events?.length ?? 0,
  }));
  for (const turn of [1, 2]) {
    await client.send(cut, 'steps 1 x', { start: { agent: 'clerk' } });
    await client.result(cut, { turn });
  }
  await client.send(cut, 'steps 1 x');
  const all = await segmentsOf(rig.client, cut);
  await rig.client.workflow.getHandle(cut).terminate();
  for (const one of [id, cut]) rig.exempt('the test deletes it', one);
  const gone = { [id]: segments, [cut]: all };
  await Promise.all(
    Object.entries(gone).map(([run, parts]) =>
      forgetSegments(
        rig.client,
        run,
        parts.map(({ runId }) => runId),
      ),
    ),
  );
}, 180_000);
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

test('the archive has each segment, even of a run without messages', async () => {
  const run = `archived-${randomUUID()}`;
  await client.start('steps', { id: run, input: {}, archive: true });
  await client.result(run);
  const { archive } = openStores(rig.home);
  const kept = await archive.list({ namespace: rig.client.options.namespace, id: run });
  const all = await segmentsOf(rig.client, run);
  expect(all.length).toBeGreaterThan(2);
  expect(new Set(kept.map(({ runId }) => runId))).toEqual(new Set(all.map(({ runId }) => runId)));
});

test('a damaged file in the archive is ignored, and an earlier copy is used', async () => {
  const { archive } = openStores(rig.home);
  const where = { namespace: rig.client.options.namespace, id };
  const [entry] = (await archive.list(where)).filter(({ runId }) => runId === segments[0]?.runId);
  if (entry === undefined) throw new Error('the archive does not have the segment');
  const json = await archive.read(where, entry);
  const readAs = (given: string, { count = entry.events, first = entry.firstRunId } = {}) =>
    readArchivedSegment(
      {
        write: async () => undefined,
        list: async () => [{ ...entry, events: count, firstRunId: first }],
        read: async () => given,
      },
      where,
      entry.runId,
    );
  await expect(readAs(json)).resolves.not.toBeNull();
  const damaged = /is damaged; restore it from a backup/;
  await expect(readAs('{"events":[]}', { count: 0 })).rejects.toThrow(damaged);
  await expect(readAs('{"events":[{}]}', { count: 1 })).rejects.toThrow(damaged);
  await expect(readAs('[null]')).rejects.toThrow(damaged);
  await expect(readAs(json, { count: entry.events + 1 })).rejects.toThrow(damaged);
  await expect(readAs(json, { first: 'another' })).rejects.toThrow(damaged);
  const longer = { ...entry, events: entry.events + 1, at: entry.at + 1 };
  const found = await readArchivedSegment(
    {
      write: async () => undefined,
      list: async () => [entry, longer],
      read: async (_run, one) => (one === longer ? '{"events":[{}]}' : json),
    },
    where,
    entry.runId,
  );
  expect(found?.events).toHaveLength(entry.events);
});

test('a fork has the messages of the run that it names, though a newer run has the id', async () => {
  const source = `archived-${randomUUID()}`;
  const first = await client.start('clerk', { id: source, message: 'steps 1 of the first' });
  await client.result(source);
  const { runId } = await rig.client.workflow.getHandle(first.id).describe();
  await client.start('clerk', { id: source, message: 'steps 1 of the second', reuseId: true });
  await client.result(source);
  const forked = await rig.start({
    agent: 'clerk',
    message: 'steps 1 of the fork',
    fork: { run: source, runId },
  });
  await forked.result();
  const { messages } = await client.transcript(forked.workflowId);
  const texts = messages.flatMap(({ role, text }) => (role === 'user' ? text : []));
  expect(texts).toEqual(['steps 1 of the first', 'steps 1 of the fork']);
});

describe('a run that the server has deleted', () => {
  test('reads the same from the archive as from its histories', async () => {
    expect(segments.length).toBeGreaterThan(1);
    const after = await read();
    expect(after.transcript).toEqual(before.transcript);
    expect(after.calls).toEqual(before.calls);
    expect(after.turns).toEqual(before.turns);
    expect(after.results).toEqual(before.results);
    await expect(client.result(id, { turn: 4 })).rejects.toThrow('its last one is 3');
    const { archived, historyLength: _, ...rest } = after.status;
    const { historyLength: __, ...expected } = before.status;
    expect(rest).toEqual(expected);
    expect(archived).toEqual({ at: expect.any(Number) as number, ended: true });
  });

  test('has its calls with their results', async () => {
    const calls = await client.calls(id);
    expect(calls.map(({ turn, call, result }) => [turn, call.name, result?.text])).toEqual([
      [1, 'note', 'noted steps 1 first #1'],
      [2, 'note', 'noted steps 1 second #1'],
      [3, 'note', 'noted steps 1 third #1'],
    ]);
    const [, second] = calls;
    const n = second?.n ?? 0;
    expect(await client.calls(id, { from: n, to: n + 1 })).toEqual([second]);
  });

  test('has agent, definition, model, settings, usage, and failed attempts per turn', async () => {
    const { turns, incomplete } = await client.turns(id);
    expect(incomplete).toBe(false);
    expect(turns.map(({ turn, agent, model, settings }) => [turn, agent, model, settings])).toEqual(
      [1, 2, 3].map((turn) => [turn, 'clerk', 'm', { temperature: 0.5 }]),
    );
    expect(turns.every(({ definition }) => /^[0-9a-f]{64}$/.test(definition))).toBe(true);
    expect(turns.map(({ reports }) => reports.map(({ type }) => type))).toEqual([
      [],
      ['rate_limit'],
      [],
    ]);
    expect(turns.every(({ outcome }) => outcome.usage.inputTokens > 0)).toBe(true);
  });

  test('is shown by the command, with a note that the server has deleted it', async () => {
    const output = await runInProcess(transcript, { id }, place());
    expect(output.stdout).toContain('steps 1 second');
    expect(output.stderr).toContain(`The server has deleted run ${id}. The archive has it until`);
    const calls = await runInProcess(transcript, { id, calls: true }, place());
    expect(calls.stdout).toMatch(
      /turn 2 · step 1 · .*\n {2}→ note .*\n {2}#\d+ result · .*\n +noted steps 1 second/,
    );
    const turns = await runInProcess(transcript, { id, turns: true }, place());
    expect(turns.stdout).toMatch(/turn 2 · completed.*\n {2}clerk [0-9a-f]{12}, model m\n/);
    expect(turns.stdout).toContain('attempt 1 failed: rate_limit: slow down');
    const shown = await runInProcess(status, { id }, place());
    expect(shown.stdout).toMatch(/status +completed/);
    expect(shown.stderr).not.toContain('unknown');
    await expect(
      runInProcess(transcript, { id, calls: true, turns: true }, place()),
    ).rejects.toThrow('--calls: expected no --turns, got both');
  });

  test('is exported, each segment as far as it was archived', async () => {
    const out = join(rig.home, 'run.json');
    const { code } = await runInProcess(exportRun, { id, allSegments: true, out }, place());
    expect(code).toBe(0);
    for (const [index, { events }] of segments.entries()) {
      const json: unknown = JSON.parse(
        await readFile(join(rig.home, `run-${index + 1}.json`), 'utf8'),
      );
      const exported = (json as { events: unknown[] }).events.length;
      expect(exported).toBeLessThan(events);
      expect(exported).toBeGreaterThan(events / 2);
    }
  });

  test('is forked, by the client and by the command', async () => {
    const other = await client.fork(id, { at: 4, message: 'steps 1 anew' });
    expect(await client.result(other)).toMatchObject({ status: 'completed' });
    const { messages } = await client.transcript(other);
    expect(messages.slice(0, 4)).toEqual(before.transcript.messages.slice(0, 4));
    const forked = await runInProcess(
      fork,
      { run: id, message: ['steps', '1', 'again'], at: 4, wait: false },
      place(),
    );
    expect(forked.stderr).toContain(`is forked from run ${id}`);
    expect(forked.stderr).toContain('The server has deleted run');
  });

  test('has an unknown end if the archive does not have it', async () => {
    const found = await client.status(cut);
    expect(found).toMatchObject({
      status: 'done',
      reason: 'unknown',
      outcome: null,
      pending: [],
      archived: { ended: false },
    });
    const lost = `the server has deleted run ${cut}, and the archive does not have the end of it`;
    await expect(client.result(cut)).rejects.toThrow(lost);
    // It had begun; its later course is unknown.
    await expect(client.result(cut, { turn: 3 })).rejects.toThrow('does not have turn 3 of it');
    expect(await client.result(cut, { turn: 1 })).toMatchObject({ status: 'completed' });
    const shown = await runInProcess(status, { id: cut }, place());
    expect(shown.stderr).toContain('what happened later, and how it ended, is unknown');
    expect(shown.stdout).toContain('the archive does not have its end');
  });

  test('is unknown without an archive', async () => {
    await rm(join(rig.home, 'archive'), { recursive: true });
    await expect(client.status(id)).rejects.toThrow(`there is no run "${id}"`);
    await expect(client.transcript(id)).rejects.toThrow(`there is no run "${id}"`);
  });
});
