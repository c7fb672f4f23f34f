import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { fileBlobStore } from '../../src/storage/file-stores.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { messageTokens } from '../../src/core/transcript/transcript.js';
import type { ModelReply, ModelRequest } from '../../src/models/model.js';
import { replyCall, replyCalls, replyText } from '../../src/testing/replies.js';
import { artifact } from '../../src/tools/built-in/artifact.js';
import { answer, defaultTools } from '../../src/tools/built-in/default-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { closeUpdate } from '../../src/workflows/messages/definitions.js';
import { clientOf } from '../support/clerk.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { historyText } from '../support/history-text.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Ended, Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

const rows = (count: number) =>
  Array.from({ length: count }, (_, id) => ({ id, note: `row ${id} ${'x'.repeat(80)}` }));
const Row = z.object({ id: z.number(), note: z.string() });
const counted: string[] = [];

const loadRows = defineTool({
  name: 'load_rows',
  description: 'loads rows',
  input: z.object({ count: z.number(), name: z.string().optional() }),
  effect: 'read',
  output: z.array(Row),
  execute: async ({ count, name }) =>
    artifact(rows(count), { summary: 'all rows', ...(name !== undefined && { name }) }),
});
const countRows = defineTool({
  name: 'count_rows',
  description: 'counts the rows of an artifact',
  input: z.object({ from: z.string() }),
  effect: 'read',
  execute: async ({ from }, { artifacts }) => {
    const found = await artifacts.get(from, z.array(Row));
    counted.push(`${artifacts.names.join()} ${found.length}`);
    return `${found.length} rows, the last ${found.at(-1)?.id}`;
  },
});
const write = defineTool({
  name: 'write',
  description: 'writes a text',
  input: z.object({ text: z.string() }),
  effect: 'keyed',
  execute: async ({ text }) => artifact(text),
});
let charges = 0;
const charge = defineTool({
  name: 'charge',
  description: 'charges a card',
  input: z.object({}),
  effect: 'keyed',
  ends: true,
  execute: async () => {
    charges += 1;
    return charges === 1 ? { error: 'declined', code: 'E42' } : { charged: charges };
  },
});
const tools = defaultTools([loadRows, countRows, write, charge]);

type Script = (step: number, request: ModelRequest) => ModelReply;
/**
 * Maps the first message of a turn to its model's replies, by the number of earlier replies in the
 * turn.
 */
const scripts = new Map<string, Script>();
const model = {
  async call(request: ModelRequest) {
    const inputTokens = request.messages.reduce((sum, one) => sum + messageTokens(one), 0);
    return { ...replyTo(request), usage: { inputTokens, outputTokens: 5, cachedTokens: 0 } };
  },
};

function replyTo(request: ModelRequest): ModelReply {
  if (request.instructions.startsWith('You summarize')) return replyText('what was before');
  const at = request.messages.findLastIndex(({ text }) => scripts.has(text));
  const turn = request.messages.slice(at);
  const step = turn.filter(({ role }) => role === 'assistant').length;
  const script = scripts.get(request.messages[at]?.text ?? '');
  return script?.(step, request) ?? replyText('done');
}
const list =
  (...replies: readonly ModelReply[]): Script =>
  (step) =>
    replies[step] ?? replyText('done');

let rig: Rig;
let client: PerdureClient;
const agent = defineAgent({ name: 'a', instructions: 'hi', model: 'm', tools });
const chooser = defineAgent({
  name: 'chooser',
  instructions: 'hi',
  model: 'm',
  decide: 'schema',
  tools: defaultTools([answer({ output: z.object({ total: z.number() }) })]),
});
const typed = defineAgent({
  name: 'typed',
  instructions: 'hi',
  model: 'm',
  tools: defaultTools([answer({ output: z.object({ total: z.number() }) }), loadRows]),
  output: z.object({ total: z.number().max(10) }),
});
beforeAll(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
  await rig.worker([agent, typed, chooser], { models: { m: model } });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

async function run(
  message: string,
  script: Script,
  input: Record<string, unknown> = {},
): Promise<Ended & { readonly texts: readonly string[] }> {
  scripts.set(message, script);
  const ended = await rig.run({ agent: 'a', message, ...input });
  return { ...ended, texts: listTexts(ended) };
}

function listTexts({ projection }: Pick<Ended, 'projection'>): readonly string[] {
  return projection.messages.filter(({ role }) => role === 'tool').map(({ text }) => text);
}

/** Bytes of the results that the runs of a tool added to the history. */
function recorded({ history }: Ended): readonly number[] {
  return (history.events ?? []).flatMap((event) => {
    const [result] = event.activityTaskCompletedEventAttributes?.result?.payloads ?? [];
    const text = Buffer.from(result?.data ?? []).toString();
    return text.includes('"artifact":{') ? [text.length] : [];
  });
}

describe('an artifact', () => {
  test('is made by one call, named by another, and returned at the end', async () => {
    const ended = await run(
      'one megabyte',
      list(
        replyCall('load_rows', { count: 10_000 }),
        replyCall('count_rows', { from: 'load_rows_result' }),
        replyCall('return_artifact', { name: 'load_rows_result' }),
      ),
    );
    const { outcome, texts } = ended;
    expect(texts[0]).toMatch(
      /^\[artifact "load_rows_result": array of 10000 objects, the first with keys id, note, 11\d{5} bytes\. The whole value is stored/,
    );
    expect(texts[0]).toContain('all rows\nThe value begins:\n[{"id":0,');
    expect(texts[1]).toBe('10000 rows, the last 9999');
    expect(counted.at(-1)).toBe('load_rows_result 10000');
    expect(outcome).toMatchObject({ status: 'completed', reason: 'tool', toolCalls: 3 });
    const blob = outcome.blob ?? { sha256: '' };
    const whole = await fileBlobStore(join(rig.home, 'blobs')).get(blob);
    expect(JSON.parse(whole)).toEqual(rows(10_000));
    expect(recorded(ended)[0]).toBeLessThan(1_000);
    expect(historyText(ended.history).length).toBeLessThan(200_000);
  });

  test('adds less than 2 kB to a history, however large it is', async () => {
    const size = async (count: number): Promise<number> => {
      const { history } = await run(
        `load ${count}`,
        list(
          replyCall('load_rows', { count }),
          replyCall('count_rows', { from: 'load_rows_result' }),
        ),
      );
      return historyText(history).length;
    };
    const [without, small, large] = [
      historyText((await run('none', list(replyCall('today'), replyCall('today')))).history).length,
      await size(1),
      await size(10_000),
    ];
    expect(large - small).toBeLessThan(700);
    expect(large - without).toBeLessThan(2_000);
  });

  test('is the output unchanged if it is small, and a text stays a text', async () => {
    const small = await run(
      'small',
      list(
        replyCall('load_rows', { count: 2 }),
        replyCall('return_artifact', { name: 'LOAD_ROWS_result' }),
      ),
    );
    expect(small.outcome).toMatchObject({ reason: 'tool', output: rows(2) });
    const text = await run(
      'text',
      list(
        replyCall('write', { text: 'a poem' }),
        replyCall('return_artifact', { name: 'write_result' }),
      ),
    );
    expect(text.outcome).toMatchObject({ answer: 'a poem', output: 'a poem' });
  });

  test('that does not exist is an error with the nearest names first, and the run continues', async () => {
    const { texts, outcome } = await run(
      'missing',
      list(
        replyCall('count_rows', { from: 'orders' }),
        replyCalls([
          { name: 'load_rows', arguments: { count: 1, name: 'orders-2026' } },
          { name: 'load_rows', arguments: { count: 2, name: 'customers' } },
        ]),
        replyCall('return_artifact', { name: 'order-2026' }),
        replyCall('list_artifacts'),
        replyCall('return_artifact', { name: 'orders-2026' }),
      ),
    );
    expect(texts[0]).toContain('unknown artifact \\"orders\\"; this run has no artifacts');
    expect(texts[3]).toContain(
      'unknown artifact \\"order-2026\\"; available: orders-2026, customers',
    );
    expect(texts[4]).toMatch(
      /^2 artifacts, newest first:\n- customers: array of 2 .*, made by load_rows \(call_1_2_1\): all rows\n- orders-2026: /,
    );
    expect(outcome).toMatchObject({ reason: 'tool', output: rows(1), steps: 5 });
  });

  test('with another value gets a number, even if both calls run at once', async () => {
    const { texts, outcome } = await run(
      'twice',
      list(
        replyCalls([1, 2, 1].map((count) => ({ name: 'load_rows', arguments: { count } }))),
        replyCalls(
          ['load_rows_result', 'load_rows_result_2'].map((from) => ({
            name: 'count_rows',
            arguments: { from },
          })),
        ),
      ),
    );
    expect(texts.slice(0, 3).map((text) => /"(\w+)"/.exec(text)?.[1])).toEqual([
      'load_rows_result',
      'load_rows_result_2',
      'load_rows_result',
    ]);
    expect(texts.slice(3)).toEqual(['1 rows, the last 0', '2 rows, the last 1']);
    expect(outcome.status).toBe('completed');
  });

  test('costs nothing for a run that makes none', async () => {
    const { history, projection } = await run('plain', list(replyCall('today')));
    expect(historyText(history)).not.toContain('"artifacts":');
    expect(projection.state).not.toHaveProperty('artifacts');
  });
});

describe('a run that continues', () => {
  test('finds its artifacts in later turns, segments, on other workers, after a summary, and in forks', async () => {
    const segment = { steps: 2, bytes: 1e7 };
    const options = { models: { m: { ...model, window: 2_500 } }, segment };
    await rig.stopWorkers();
    await rig.worker([agent, typed, chooser], options);
    scripts.set('make', list(replyCall('load_rows', { count: 300, name: 'orders' })));
    scripts.set('use', list(replyCall('count_rows', { from: 'orders' })));
    const long = `talk ${'y'.repeat(2_500)}`;
    scripts.set(long, list());
    const handle = await rig.start({ agent: 'a', open: true, message: 'make' });
    await outcomeOf(handle, 1);
    for (let turn = 2; turn <= 5; turn += 1) {
      await ask(handle, long);
      await outcomeOf(handle, turn);
    }
    await rig.stopWorkers();
    await rig.worker([agent, typed, chooser], options);
    await ask(handle, 'use');
    await outcomeOf(handle, 6);
    const fork = await client.fork(handle.workflowId, { message: 'use' });
    const before = await client.fork(handle.workflowId, { message: 'use', at: 1 });
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await handle.result();
    const segments = await segmentsOf(rig.client, handle.workflowId);
    expect(segments.length).toBeGreaterThan(2);
    const allMessages = segments.flatMap(({ view }) => view.messages);
    expect(allMessages.some((one) => one.role === 'user' && one.compacts !== undefined)).toBe(true);
    expect(allMessages.findLast(({ role }) => role === 'tool')?.text).toBe(
      '300 rows, the last 299',
    );
    const ends = [fork, before].map(({ id }) => rig.end(rig.client.workflow.getHandle(id)));
    const [forked, early] = (await Promise.all(ends)).map(listTexts);
    expect(forked?.at(-1)).toBe('300 rows, the last 299');
    expect(early?.at(-1)).toContain('this run has no artifacts');
    expect((await client.transcript(handle.workflowId)).artifacts).toMatchObject([
      { name: 'orders', tool: 'load_rows' },
    ]);
  });
});

describe('a tool that ends the turn', () => {
  test('and returns an error does not end it, and may be called again', async () => {
    const { outcome, texts } = await run('pay', list(replyCall('charge'), replyCall('charge')));
    expect(texts[0]).toBe('{"error":{"type":"tool_error","message":"declined (code E42)"}}');
    expect(outcome).toMatchObject({ reason: 'tool', output: { charged: 2 }, steps: 2 });
  });

  test('has to match the output of its agent, which is then typed', async () => {
    const { outcome, texts } = await run(
      'total',
      list(
        replyCall('answer', { total: 12 }),
        replyCall('load_rows', { count: 1 }),
        replyCall('return_artifact', { name: 'load_rows_result' }),
        replyCall('answer', { total: 7 }),
      ),
      { agent: 'typed' },
    );
    expect(texts[0]).toContain('the result of answer cannot be the output of this agent');
    expect(texts[0]).toContain('total: expected number to be <=10');
    expect(texts[2]).toContain('the result of return_artifact cannot be the output');
    expect(outcome).toMatchObject({ status: 'completed', reason: 'tool', output: { total: 7 } });
  });

  test('may be named like the answer itself if decisions are JSON', async () => {
    const decide = (decision: object) => list(replyText(JSON.stringify({ decision })));
    const calls = decide({ action: 'answer', arguments: { total: 1 } });
    const { outcome } = await run('decided', calls, { agent: 'chooser' });
    expect(outcome).toMatchObject({ reason: 'tool', output: { total: 1 } });
    const directAnswer = decide({ action: 'answer', answer: 'one' });
    const plain = await run('decided in words', directAnswer, { agent: 'chooser' });
    expect(plain.outcome).toMatchObject({ reason: 'answer', answer: 'one' });
  });
});
