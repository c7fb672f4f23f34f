import { readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { record } from '../../src/cli/commands/record.js';
import { createClient, type PerdureClient } from '../../src/index.js';
import { findSecret, withoutSecretsIn } from '../../src/recordings/record-run.js';
import { learnSecrets } from '../../src/secrets/known.js';
import {
  type Recording,
  readRecording,
  recordRun,
  replyCall,
  replyText,
  scriptedModel,
  writeRecording,
} from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { CANARIES, CANARY_NAMES } from '../support/canaries.js';
import { forgetSegments } from '../support/forget-run.js';
import { runInProcess } from '../support/in-process.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

const LONG = 'many words '.repeat(20_000);

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ at: z.string() }),
  effect: 'read',
  execute: () => LONG,
});
const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  input: z.object({ order: z.int() }),
  effect: 'once',
  approval: 'always',
  execute: () => 'paid',
});

let rig: Rig;
let client: PerdureClient;
let recording: Recording;
const id = `record-${Date.now()}`;

beforeAll(async () => {
  rig = await createMemoryRig();
  client = await createClient({ client: rig.client, taskQueue: rig.taskQueue, home: rig.home });
  const clerk = defineAgent({
    name: 'clerk',
    description: 'Looks.',
    instructions: 'Look.',
    model: 'clerk',
    tools: [look],
  });
  const desk = defineAgent({
    name: 'desk',
    instructions: 'Help.',
    model: 'desk',
    tools: [refund],
    agents: [clerk],
  });
  const models = {
    desk: scriptedModel([
      replyCall('clerk', { message: 'Order 17?' }),
      replyCall('refund', { order: 17 }),
      replyText('Paid.'),
      replyText('You are welcome.'),
    ]),
    clerk: scriptedModel([replyCall('look', { at: '17' }), replyText('It is late.')]),
  };
  await rig.worker([desk], { models, segment: { steps: 2, bytes: 2_000_000 } });
  const run = await client.start(desk, 'Refund order 17', { id, open: true, by: 'ann' });
  for await (const event of client.events(run)) if (event.type === 'request-raised') break;
  const [request] = (await client.status(run)).pending;
  if (request === undefined) throw new Error('no request is open');
  const { id: which, digest } = request;
  await client.resolve(run, { request: which, digest, as: 'approve', by: 'bob' });
  await client.result(run);
  await client.send(run, 'Thanks');
  await client.result(run, { turn: 2 });
  await client.close(run);
  await rig.end(rig.client.workflow.getHandle(id));
  recording = await recordRun(client, id);
});
afterAll(async () => {
  await client?.disconnect();
  await rig?.close();
});

describe('a recording', () => {
  test('has the run through all its segments, with the agents that it called', () => {
    const [desk, clerk] = recording.runs;
    expect(recording.runs.map(({ agent }) => agent)).toEqual(['desk', 'clerk']);
    expect(desk?.input).toMatchObject({ agent: 'desk', message: 'Refund order 17', by: 'ann' });
    expect(desk?.facts.map((fact) => (fact.type === 'control' ? fact.name : fact.type))).toEqual(
      expect.arrayContaining(['reply', 'called', 'decision', 'result', 'message', 'close']),
    );
    const replies = desk?.facts.filter(({ type }) => type === 'reply');
    expect(replies).toHaveLength(4);
    expect(desk?.facts.find(({ type }) => type === 'decision')).toMatchObject({
      decision: { as: 'approve', by: 'bob' },
    });
    expect(desk?.facts.find(({ type }) => type === 'result')).toMatchObject({
      turn: 1,
      step: 2,
      effect: 'once',
      call: { name: 'refund', arguments: '{"order":17}' },
      result: { ok: true, text: 'paid' },
    });
    expect(desk?.messages.map(({ n }) => n)).toEqual(desk?.messages.map((_, index) => index));
    expect(desk?.definitions.map(({ name }) => name)).toEqual(['desk']);
    expect(desk?.endedAt).toBeGreaterThanOrEqual(desk?.startedAt ?? Infinity);
    expect(clerk?.messages.at(-1)).toMatchObject({ role: 'assistant', text: 'It is late.' });
    expect(Object.values(recording.blobs)).toEqual([LONG]);
  });

  test('is a pure function of the histories', async () => {
    expect(await recordRun(client, id)).toEqual(recording);
  });

  test('is the same after it was written and read, with its large texts beside it', async () => {
    const file = join(rig.home, 'cases', 'desk.json');
    await writeRecording(file, recording);
    expect(await readRecording(file)).toEqual(JSON.parse(JSON.stringify(recording)));
    const [sha256 = ''] = Object.keys(recording.blobs);
    expect(await readdir(join(rig.home, 'cases', 'desk.blobs'))).toEqual([sha256]);
    expect(await readFile(file, 'utf8')).not.toContain(LONG.slice(0, 50_000));
    await writeFile(join(rig.home, 'cases', 'desk.blobs', sha256), 'other');
    await expect(readRecording(file)).rejects.toThrow(
      /desk\.json: blobs: expected the recorded text/,
    );
    await rm(join(rig.home, 'cases', 'desk.blobs', sha256));
    await expect(readRecording(file)).rejects.toThrow(/blobs: expected the text in .*no such file/);
  });

  test('is written by the command', async () => {
    const out = join(rig.home, 'case.json');
    const place = {
      client: rig.client,
      address: inject('temporalAddress'),
      home: rig.home,
      json: true,
    };
    const { stdout, stderr, code } = await runInProcess(record, { id, out }, place);
    expect(JSON.parse(stdout)).toEqual({
      id,
      file: out,
      runs: 2,
      replies: 6,
      results: 2,
      blobs: 1,
    });
    expect(stderr).toContain(`6 replies and 2 results of 2 runs written to ${out}`);
    expect(code).toBe(0);
    expect(await readRecording(out)).toEqual(JSON.parse(JSON.stringify(recording)));
    const printed = await runInProcess(record, { id }, place);
    await writeFile(out, printed.stdout);
    expect(await readRecording(out)).toEqual(JSON.parse(JSON.stringify(recording)));
  });

  test('keeps a file that is not a recording of the run, unless it is forced', async () => {
    const place = { client: rig.client, address: inject('temporalAddress'), home: rig.home };
    const out = join(rig.home, 'kept.json');
    const other = { ...recording, runs: recording.runs.toReversed() };
    await writeRecording(out, other);
    const called = recording.runs.at(-1)?.id ?? '';
    for (const [content, what] of [
      [await readFile(out, 'utf8'), `a recording of "${called}"`],
      ['{"mine":1}', 'no recording that can be read here'],
    ] as const) {
      await writeFile(out, content);
      await expect(runInProcess(record, { id, out }, place)).rejects.toThrow(
        `got ${out}, which is ${what}; name another file`,
      );
      expect(await readFile(out, 'utf8')).toBe(content);
    }
    expect((await runInProcess(record, { id, out, force: true }, place)).code).toBe(0);
    expect((await readRecording(out)).runs[0]?.id).toBe(id);
    expect((await runInProcess(record, { id, out }, place)).code).toBe(0);
  });

  test('says which model calls a rerun cannot answer', async () => {
    const twice = defineAgent({
      name: 'twice',
      instructions: 'Think twice.',
      model: 'twice',
      decide: async ({ model }) => ({ answer: (await model.call()).text }),
    });
    await rig.worker([twice], { models: { twice: scriptedModel([replyText('Yes.')]) } });
    const decided = `decided-${Date.now()}`;
    await client.result(await client.start('twice', { message: 'Go', id: decided }));
    const place = { client: rig.client, address: inject('temporalAddress'), home: rig.home };
    const { stderr } = await runInProcess(record, { id: decided }, place);
    expect(stderr).toContain(
      'The history lacks 1 model call of a `decide` function: rerun reports a difference there',
    );
    expect((await runInProcess(record, { id }, place)).stderr).not.toContain('lacks');
  });
});

describe('reading a recording names the wrong field', () => {
  const changed = (change: (value: ReturnType<typeof copy>) => void): unknown => {
    const value = copy();
    change(value);
    return value;
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a loose copy, to be broken
  const copy = () =>
    JSON.parse(JSON.stringify(recording)) as {
      version: number;
      format: string;
      runs: { facts: Record<string, unknown>[]; messages: Record<string, unknown>[] }[];
    };
  test.each<[string, (value: ReturnType<typeof copy>) => void, RegExp]>([
    [
      'the version',
      (value) => (value.version = 2),
      /recording\.version: expected 1, got 2; read it/,
    ],
    ['the format', (value) => (value.format = 'x'), /recording\.format: expected "perdure/],
    [
      'no run',
      (value) => (value.runs = []),
      /recording\.runs: expected a list with the recorded run/,
    ],
    [
      'a fact of another type',
      (value) => (value.runs[0]!.facts[0]!['type'] = 'x'),
      /recording\.runs\[0\]\.facts\[0\]\.type: expected one of reply, result/,
    ],
    [
      'a message without a text',
      (value) => delete value.runs[1]!.messages[0]!['text'],
      /recording\.runs\[1\]\.messages\[0\]\.text: expected a string/,
    ],
  ])('%s', async (_what, change, message) => {
    const file = join(rig.home, 'broken.json');
    await writeFile(file, JSON.stringify({ ...(changed(change) as object), blobs: [] }));
    await expect(readRecording(file)).rejects.toThrow(message);
  });
});

describe('a secret in a recording', () => {
  test('is refused with its place, or replaced: none of 12 planted ones is in a recording', async () => {
    expect(Object.keys(CANARIES)).toHaveLength(12);
    learnSecrets({ env: CANARIES, names: CANARY_NAMES });
    for (const value of Object.values(CANARIES)) {
      const [run] = recording.runs;
      if (run === undefined) throw new Error('no run');
      const [message, ...rest] = run.messages;
      if (message?.role !== 'user') throw new Error('no message');
      const planted: Recording = {
        ...recording,
        runs: [{ ...run, messages: [{ ...message, text: `see ${value} here` }, ...rest] }],
        blobs: { ...recording.blobs, ['0'.repeat(64)]: value },
      };
      expect(findSecret(planted)?.path).toBe('runs[0].messages[0].text');
      const text = JSON.stringify(withoutSecretsIn(planted));
      expect(text).toContain('[redacted');
      expect(text).not.toContain(JSON.stringify(value).slice(1, -1));
      expect(findSecret(withoutSecretsIn(planted))).toBeNull();
    }
  });

  test('with the form of a key is one, too', async () => {
    const planted = { ...recording, blobs: { ['0'.repeat(64)]: 'key: sk-live-0123456789abcdef' } };
    expect(findSecret(planted)).toEqual({
      path: `blobs.${'0'.repeat(64)}`,
      name: 'a text with the form of a key',
    });
    expect(findSecret(recording)).toBeNull();
  });
});

test('a run of which a called one is gone is not recorded', async () => {
  const child = recording.runs[1]?.id ?? '';
  rig.exempt('the test deletes it', child);
  const segments = await segmentsOf(rig.client, child);
  await forgetSegments(
    rig.client,
    child,
    segments.map(({ runId }) => runId),
  );
  await expect(recordRun(client, id)).rejects.toThrow(
    `run: expected all runs that it has called, got none for "${child}"`,
  );
});
