import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { createClient, defineAgent, defineConfig, template, type Json } from '../src/index.js';
import { runAgent } from '../src/workflow.js';
import {
  binaryClassify,
  classify,
  tags,
  type Classification,
  type TagAnswer,
} from '../src/output.js';

test('the type of an agent’s output reaches the client', () => {
  const person = defineAgent({
    name: 'p',
    instructions: 'x',
    output: z.object({ name: z.string(), tags: z.array(z.string()).optional() }),
  });
  const reader = defineAgent({ name: 'r', instructions: 'x', output: (text) => text.length });
  const marked = defineAgent({ name: 't', instructions: 'x', output: tags({ signals: ['DONE'] }) });
  const classifier = defineAgent({
    name: 'c',
    instructions: 'x',
    output: classify(['good', 'bad']),
  });
  const asked = defineAgent({ name: 'b', instructions: 'x', output: binaryClassify() });
  defineConfig({ agents: [person, reader, marked, classifier, asked] });
  const outcomes = async (): Promise<void> => {
    const client = await createClient();
    const { output } = await client.result(await client.start(person, { message: 'x' }));
    expectTypeOf(output).toEqualTypeOf<{ name: string; tags?: string[] | undefined } | null>();
    const read = await client.result(await client.start(reader, { message: 'x' }));
    expectTypeOf(read.output).toEqualTypeOf<number | null>();
    const done = await client.result(await client.start(marked, { message: 'x' }));
    expectTypeOf(done.output).toEqualTypeOf<TagAnswer<never, never, 'DONE'> | null>();
    const mood = await client.result(await client.start(classifier, { message: 'x' }));
    expectTypeOf(mood.output).toEqualTypeOf<Classification<'good' | 'bad'> | null>();
    const sure = await client.result(await client.start(asked, { message: 'x' }));
    expectTypeOf(sure.output).toEqualTypeOf<Classification<'true' | 'false'> | null>();
  };
  expectTypeOf(outcomes).toBeFunction();
});

test('the type of an agent reaches a workflow that runs it', () => {
  const person = defineAgent({
    name: 'p',
    instructions: 'x',
    output: z.object({ name: z.string() }),
    prompts: {
      age: {
        text: template('How old is {{who}}?', { args: ['who'] }),
        output: z.object({ age: z.int() }),
      },
    },
  });
  defineConfig({ agents: [person] });
  const workflow = async (): Promise<void> => {
    const own = await runAgent<typeof person>({ agent: 'p', message: 'x' });
    expectTypeOf(own.output).toEqualTypeOf<{ name: string } | null>();
    const asked = await runAgent<typeof person, 'age'>({
      agent: 'p',
      prompt: 'age',
      promptArgs: { who: 'Ann' },
    });
    expectTypeOf(asked.output).toEqualTypeOf<{ age: number } | null>();
    // @ts-expect-error -- the argument is missing
    await runAgent<typeof person, 'age'>({ agent: 'p', prompt: 'age' });
    // @ts-expect-error -- there is no such prompt
    await runAgent<typeof person, 'year'>({ agent: 'p', prompt: 'year' });
    const untyped = await runAgent({ agent: 'anything', message: 'x' });
    expectTypeOf(untyped.output).toEqualTypeOf<Json>();
  };
  expectTypeOf(workflow).toBeFunction();
});
