import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { ModelSettings } from '../../src/core/definition/definition.js';
import { InputError } from '../../src/core/errors.js';
import type { Json } from '../../src/core/text/json.js';
import type { Model } from '../../src/models/model.js';
import { ownedText } from '../../src/storage/owned-text.js';
import { openStores } from '../../src/storage/file-stores.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

let rig: Rig;
let client: PerdureClient;

/** The context of each call, and the value of the artifact that it named. */
const seen: { readonly context: Json; readonly value: unknown }[] = [];
const read = defineTool({
  name: 'read',
  description: 'reads a value',
  input: z.object({ name: z.string() }),
  effect: 'read',
  repeat: 'allow',
  async execute({ name }, { context, artifacts }) {
    const value = name === 'none' ? null : await artifacts.get(name);
    seen.push({ context, value });
    return 'read';
  },
});

/** Calls `read` with the last word of each question, or `ask` for the agent below. */
/** The settings of each request. */
const requested: ModelSettings[] = [];

const model: Model = {
  call: ({ messages, settings }) => {
    requested.push(settings);
    const last = messages.at(-1);
    const usage = { inputTokens: 10, outputTokens: 5, cachedTokens: 0 };
    const [verb = '', name = ''] = last?.role === 'user' ? last.text.split(' ') : [];
    if (verb === '') return Promise.resolve({ text: 'done', calls: [], finish: 'stop', usage });
    const inputs: Record<string, object> = {
      ask: { message: `read ${name}` },
      read_result: { ref: /"ref":"(\w+)"/.exec(messages[0]?.text ?? '')?.[1] },
    };
    const input = inputs[verb] ?? { name };
    const calls = [{ name: verb, arguments: JSON.stringify(input) }];
    return Promise.resolve({ text: '', calls, finish: 'calls', usage });
  },
};

beforeAll(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
  const base = { instructions: 'Read.', model: 'm', tools: [read] };
  const below = defineAgent({ ...base, name: 'below', description: 'reads' });
  const desk = defineAgent({ ...base, name: 'desk', agents: [{ agent: below, as: 'ask' }] });
  const settings = { temperature: 0.5, seed: 1, maxOutputTokens: 500 };
  const tuned = defineAgent({ ...base, name: 'tuned', settings });
  const strict = defineAgent({ ...base, name: 'strict', callSettings: ['temperature'] });
  await rig.worker([desk, below, tuned, strict], { models: { m: model } });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

/** Sends a message to an open run, and returns what its turn has read. */
async function turn(run: string, message: Parameters<PerdureClient['send']>[1]) {
  const before = seen.length;
  const sent = await client.send(run, message);
  if (!sent.delivered) throw new Error('the message was not delivered');
  const { status, answer, error } = await client.result(run, { turn: sent.turn });
  return { status, answer, error, seen: seen.slice(before) };
}

async function open(context?: Json): Promise<string> {
  const run = await client.start('desk', { open: true, ...(context !== undefined && { context }) });
  return run.id;
}

describe('the context of a message', () => {
  test('extends that of the run for its turn, or replaces it', async () => {
    const run = await open({ tenant: 'acme', role: 'user' });
    const contexts = [
      await turn(run, { message: 'read none', context: { role: 'admin', day: 3 } }),
      await turn(run, 'read none'),
      await turn(run, { message: 'read none', context: { day: 4 }, contextMode: 'replace' }),
      await turn(run, { message: 'read none', context: ['list'] }),
    ].map((one) => one.seen.map(({ context }) => context));
    expect(contexts).toEqual([
      [{ tenant: 'acme', role: 'admin', day: 3 }],
      [{ tenant: 'acme', role: 'user' }],
      [{ day: 4 }],
      [['list']],
    ]);
  });

  test('extends one that is stored because of its size, and reaches called agents', async () => {
    const run = await open({ tenant: 'acme', large: 'x'.repeat(40_000) });
    const { seen: reads } = await turn(run, { message: 'ask none', context: { role: 'admin' } });
    expect(reads[0]?.context).toMatchObject({ tenant: 'acme', role: 'admin' });
    const small = await open('a text');
    const called = await turn(small, { message: 'ask none', context: { role: 'admin' } });
    expect(called.seen[0]?.context).toEqual({ role: 'admin' });
  });

  test.each<[object, string]>([
    [{ context: 'x'.repeat(16_001) }, 'context: expected at most 16000 characters with a message'],
    [{ contextMode: 'replace' }, 'contextMode: expected a context'],
    [
      { context: 1, contextMode: 'merge' },
      'contextMode: expected "extend" or "replace", got "merge"',
    ],
  ])('is refused if it is %j', async (rest, words) => {
    const asked = client.send('desk-x', { message: 'hi', ...rest });
    await expect(asked).rejects.toThrow(InputError);
    await expect(asked).rejects.toThrow(words);
  });

  test('of a caller is not accepted from a client', async () => {
    const input = { agent: 'desk', message: 'hi', turnContext: { value: 1 } };
    const { outcome } = await rig.run(input);
    expect(outcome.error).toContain('turnContext: expected only from an agent that calls another');
  });
});

describe('values that are sent with a message', () => {
  test('are artifacts: the model reads a summary of them, and a tool gets the whole value by name', async () => {
    const orders = Array.from({ length: 300 }, (_, id) => ({ id, euros: 7 }));
    const run = await client.start('desk', {
      message: 'read orders',
      artifacts: { orders, note: 'Read me.' },
    });
    const before = seen.length;
    expect(await client.result(run)).toMatchObject({ status: 'completed', toolCalls: 1 });
    expect(seen.slice(before)).toEqual([{ context: null, value: orders }]);
    const { messages } = await client.transcript(run);
    expect(messages[0]).toMatchObject({ role: 'user', origin: 'perdure' });
    expect(messages[0]?.text).toMatch(
      /^\[artifact "orders": array of 300 objects, the first with keys id, euros\..*pass it to a tool/,
    );
    expect(messages[0]?.text).toContain('[artifact "note": text of 8 characters.');
    expect(messages[1]).toMatchObject({ role: 'user', text: 'read orders' });
  });

  test('keep their names: another value under the same name gets a number', async () => {
    const run = await open();
    const first = await turn(run, { message: 'read fact', artifacts: { fact: { a: 1 } } });
    const second = await turn(run, { message: 'read fact_2', artifacts: { fact: { a: 2 } } });
    const again = await turn(run, { message: 'read fact', artifacts: { fact: { a: 1 } } });
    expect([first, second, again].map((one) => one.seen[0]?.value)).toEqual([
      { a: 1 },
      { a: 2 },
      { a: 1 },
    ]);
    const { messages } = await client.transcript(run);
    expect(messages.map(({ text }) => text).join('\n')).toContain(
      '[artifact "fact_2" ("fact" already names another value)',
    );
  });

  test('belong to a fork of their run, and to no other run', async () => {
    const run = await open();
    await turn(run, { message: 'read fact', artifacts: { fact: 'gold' } });
    const fork = await client.fork(run, { open: true });
    expect((await turn(fork.id, 'read fact')).seen[0]?.value).toBe('gold');
    // The reference that the fork's model reads is the fork's own.
    const paged = await turn(fork.id, 'read_result first');
    expect(paged).toMatchObject({ status: 'completed' });
    const result = (await client.transcript(fork.id)).messages.findLast(
      (one) => one.role === 'tool',
    );
    expect(result?.text).toContain('the end]\ngold');
    const { blobs } = openStores(rig.home);
    const stolen = await blobs.put(ownedText('artifact', run, 'gold'));
    const given = { name: 'theirs', blob: stolen, kind: 'text', text: true, head: 'g' };
    const { outcome, projection } = await rig.run({
      agent: 'desk',
      message: 'read theirs',
      artifacts: [given],
    });
    expect(outcome.status).toBe('completed');
    const refused = projection.messages.find(({ role }) => role === 'tool');
    expect(refused?.text).toContain('was not stored for this run');
  });

  test('may be any JSON value', async () => {
    const odd = Object.assign(Object.create(null) as object, { zero: -0, list: [null, 'x', 1.5] });
    const run = await client.start('desk', { message: 'read odd', artifacts: { odd } });
    const before = seen.length;
    await client.result(run);
    expect(seen[before]?.value).toEqual({ zero: 0, list: [null, 'x', 1.5] });
  });

  test('are not passed to a fork by a client that has not stored them for it', async () => {
    const run = await open();
    await turn(run, 'read none');
    const forked = client.fork(run, { message: 'x', artifacts: { a: 1 } } as never);
    await expect(forked).rejects.toThrow(
      'artifacts: expected values that a client has stored, got values by name; give these to `start` or `send`',
    );
  });

  test.each<[unknown, string]>([
    [null, 'artifacts: expected values by name, got null'],
    [0, 'artifacts: expected values by name, got 0'],
    ['', 'artifacts: expected values by name, got ""'],
    [{ sparse: Array(1) }, 'artifacts.sparse: expected a text or JSON, got [null]'],
    [{ count: NaN }, 'artifacts.count: expected a text or JSON, got null'],
    [['x'], 'artifacts: expected values by name, got ["x"]'],
    [{ 'A b': 1 }, 'artifacts: expected names of 1 to 64 of a–z, 0–9, "_", and "-", got "A b"'],
    [
      { day: new Date(0) },
      'artifacts.day: expected a text or JSON, got "1970-01-01T00:00:00.000Z"',
    ],
    [{ gone: undefined }, 'artifacts.gone: expected a text or JSON, got undefined'],
    [{ list: [1, undefined] }, 'artifacts.list: expected a text or JSON, got [1,null]'],
    [{}, 'artifacts: expected 1–20, got 0'],
    [
      Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`n${n}`, n])),
      'artifacts: expected 1–20, got 21',
    ],
  ])('are refused if they are %j', async (artifacts, words) => {
    const given = { message: 'hi', artifacts: artifacts as Record<string, unknown> };
    await expect(client.start('desk', given)).rejects.toThrow(words);
    await expect(client.send('desk-x', given)).rejects.toThrow(words);
    await expect(client.send('desk-x', given)).rejects.toThrow(InputError);
  });
});

describe('the settings of a message', () => {
  const metadata = { team: 'blue' };

  test('add to those of the agent for each model call of its turn alone, and are recorded', async () => {
    requested.length = 0;
    const first = { seed: 2, metadata };
    const run = await client.start('tuned', { message: 'read none', open: true, settings: first });
    await client.result(run, { turn: 1 });
    const second = await client.send(run, { message: 'read none', settings: { temperature: 0.1 } });
    await client.result(run, { turn: second.delivered ? second.turn : 0 });
    const third = await client.send(run, 'read none');
    await client.result(run, { turn: third.delivered ? third.turn : 0 });
    await client.close(run);
    const own = { temperature: 0.5, seed: 1, maxOutputTokens: 500 };
    const expected = [{ ...own, ...first }, { ...own, temperature: 0.1 }, own];
    expect(requested).toEqual([0, 0, 1, 1, 2, 2].map((index) => expected[index]));
    const { turns } = await client.turns(run);
    expect(turns.map(({ settings }) => settings)).toEqual(expected);
  });

  test('are refused if the agent does not allow them, before anything is recorded', async () => {
    const run = await client.start('strict', { open: true });
    await client.send(run, { message: 'hello', settings: { temperature: 0.1 } });
    await expect(client.send(run, { message: 'x', settings: { seed: 1 } })).rejects.toThrow(
      'settings.seed: agent "strict" allows temperature; remove it, or add it to `callSettings` of the agent',
    );
    await expect(client.send(run, { message: 'x', settings: { api_key: 'k' } })).rejects.toThrow(
      /^settings\.api_key: expected no credential, address/,
    );
    await client.close(run);
    const started = await client.start('tuned', {
      message: 'x',
      settings: { maxOutputTokens: 501 },
    });
    await expect(client.result(started)).resolves.toMatchObject({
      status: 'failed',
      reason: 'input',
      error:
        "settings.maxOutputTokens: expected a whole number from 1 to 500, the agent's own, got 501",
    });
    const key = { message: 'x', settings: { 'Extra-Headers': {} } };
    await expect(client.start('tuned', key)).rejects.toThrow(InputError);
  });
});
