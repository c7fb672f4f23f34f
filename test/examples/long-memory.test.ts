import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { openMemory } from '../../examples/long-memory/sqlite-memory.js';
import type {
  EndedTurn,
  Memory,
  RememberContext,
  FoundDocument,
} from '../../src/agents/agent-parts.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import { replyText } from '../../src/testing/replies.js';
import { startExample } from '../support/example.js';

/** The shortest memory that fulfills the contract. */
function listMemory(): Memory {
  const turns = new Map<string, { readonly of: string; readonly text: string }>();
  return {
    retrieve: ({ query, limit }, { context }) =>
      [...turns.values()]
        .filter(({ of, text }) => of === JSON.stringify(context) && text.includes(query))
        .slice(0, limit)
        .map(({ text }) => text),
    remember: ({ messages, outcome }, { context, idempotencyKey }) => {
      const text = `${messages[0]?.text} ${outcome.answer}`;
      turns.set(idempotencyKey, { of: JSON.stringify(context), text });
    },
  };
}

const folder = await mkdtemp(join(tmpdir(), 'perdure-memory-'));
afterAll(async () => await rm(folder, { recursive: true }));

const contextOf = (person: string): Omit<RememberContext, 'idempotencyKey'> => ({
  context: { person },
  signal: new AbortController().signal,
  run: { id: 'run', runId: 'run', turn: 1 },
  log: () => undefined,
});

const ended = (message: string, answer: string): EndedTurn => ({
  turn: 1,
  messages: [
    { role: 'user', text: message },
    { role: 'assistant', text: answer, calls: [] },
  ],
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a memory reads only these
  outcome: { status: 'completed', reason: 'answer', answer } as Outcome,
});

const textOf = (found: FoundDocument): string => (typeof found === 'string' ? found : found.text);

async function search(memory: Memory, person: string, limit = 5): Promise<readonly string[]> {
  const query = { query: 'stamps', messages: [], limit };
  return (await memory.retrieve(query, contextOf(person))).map(textOf);
}

describe.each<[string, () => Memory | Promise<Memory>]>([
  ['in a list', listMemory],
  ['in SQLite', async () => await openMemory()],
  ['in a SQLite file', async () => await openMemory(join(folder, 'contract.sqlite'))],
])('a memory %s', (_, open) => {
  test('finds what was stored, once per key, and for no other person', async () => {
    const memory = await open();
    const turn = ended('I collect stamps', 'Lovely.');
    for (const key of ['a', 'a', 'b']) {
      await memory.remember(turn, { ...contextOf('ann'), idempotencyKey: key });
    }
    await memory.remember(ended('I sell stamps', 'I see.'), {
      ...contextOf('bob'),
      idempotencyKey: 'c',
    });
    const found = await search(memory, 'ann');
    expect(found).toHaveLength(2);
    for (const text of found) expect(text).toContain('I collect stamps');
    expect(await search(memory, 'ann', 1)).toHaveLength(1);
    expect(await search(memory, 'eve')).toEqual([]);
  });
});

test('a SQLite file is read again by the next process', async () => {
  const file = join(folder, 'again.sqlite');
  const turns = ['first stamps', 'second stamps', 'third stamps'];
  const memory = await openMemory(file);
  await Promise.all(
    turns.map(async (question) => {
      await memory.remember(ended(question, 'ok'), {
        ...contextOf('ann'),
        idempotencyKey: question,
      });
    }),
  );
  expect(await search(await openMemory(file), 'ann')).toHaveLength(3);
});

test('the companion of the example remembers a person in another conversation', async () => {
  const example = await startExample('long-memory');
  const { rig, stub } = example;
  stub.script(replyText('Hello Ann!'), replyText('You collect stamps.'));
  const context = { person: 'ann' };
  await rig.run({ agent: 'companion', message: 'I am Ann and I collect stamps', context });
  const { outcome } = await rig.run({ agent: 'companion', message: 'Which stamps?', context });
  expect(outcome).toMatchObject({ answer: 'You collect stamps.' });
  const [first, second] = stub.requests.map(({ messages }) => messages);
  expect(first).toHaveLength(2);
  expect(second?.at(-1)?.content).toContain('I am Ann and I collect stamps\nHello Ann!');
  await example.close();
});
