import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { createClient, defineAgent, template, type Agent } from '../../src/index.js';
import { runInMemory } from '../../src/testing.js';
import { runAgent } from '../../src/workflow.js';

test('the arguments of a template are typed wherever its agent is started', () => {
  const writer = defineAgent({
    name: 'writer',
    instructions: template('Write about {{topic}} in {{words}} words.', {
      args: z.object({ topic: z.string(), words: z.int().optional() }),
    }),
  });
  const named = defineAgent({
    name: 'named',
    instructions: template('Extract the {{kind}}.', { args: ['kind'] }),
  });
  const plain = defineAgent({ name: 'plain', instructions: 'Help.' });
  const uses = async (): Promise<void> => {
    const client = await createClient();
    const good = { topic: 'tea' };
    await client.start(writer, 'x', { args: good });
    await client.start(writer, { message: 'x', args: { ...good, words: 9 } });
    await client.run(named, 'x', { args: { kind: 'dates' } });
    await runInMemory(named, { message: 'x', args: { kind: 1 } });
    await client.schedule.create({
      id: 's',
      every: '1 hour',
      agent: writer,
      message: 'x',
      args: good,
    });
    await client.schedule.update('s', { agent: writer, args: good });
    await client.send('r', 'x', { start: { agent: writer, args: good } });
    await client.batch(writer, [{ message: 'x', args: good }], { id: 'b', args: good }).all();
    await runAgent<typeof writer>({ agent: 'writer', message: 'x', args: good });

    // @ts-expect-error a misspelled argument
    await client.start(writer, 'x', { args: { topci: 'tea' } });
    // @ts-expect-error a missing argument
    await client.start(writer, { message: 'x', args: { words: 9 } });
    // @ts-expect-error an argument of another type
    await client.run(writer, 'x', { args: { topic: 'tea', words: 'nine' } });
    // @ts-expect-error a name that is not declared
    await client.run(named, 'x', { args: { king: 'dates' } });
    // @ts-expect-error a misspelled argument in memory
    await runInMemory(named, { message: 'x', args: { king: 1 } });
    const hourly = { id: 's', every: '1 hour', message: 'x' } as const;
    // @ts-expect-error a misspelled argument of a schedule
    await client.schedule.create({ ...hourly, agent: writer, args: { topci: 'tea' } });
    // @ts-expect-error a misspelled argument of a changed schedule
    await client.schedule.update('s', { agent: writer, args: { topci: 'tea' } });
    // @ts-expect-error a misspelled argument of a run that a message starts
    await client.send('r', 'x', { start: { agent: writer, args: { topci: 'tea' } } });
    // @ts-expect-error a misspelled argument of a task
    client.batch(writer, [{ message: 'x', args: { topci: 'tea' } }], { id: 'b' });
    // @ts-expect-error a misspelled argument in a workflow
    await runAgent<typeof writer>({ agent: 'writer', message: 'x', args: { topci: 'tea' } });

    // An agent whose type is unknown takes any JSON.
    await client.start('writer', 'x', { args: { any: 1 } });
    const any: Agent = writer;
    await client.start(any, 'x', { args: { any: 1 } });
    await client.start(plain, 'x');
  };
  expectTypeOf(uses).toBeFunction();
});
