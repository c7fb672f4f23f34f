import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { createClient, defineAgent, defineConfig, tags } from '../src/index.js';

test('the type of an agent’s output reaches the client', () => {
  const person = defineAgent({
    name: 'p',
    instructions: 'x',
    output: z.object({ name: z.string(), tags: z.array(z.string()).optional() }),
  });
  const reader = defineAgent({ name: 'r', instructions: 'x', output: (text) => text.length });
  const marked = defineAgent({ name: 't', instructions: 'x', output: tags({ signals: ['DONE'] }) });
  defineConfig({ agents: [person, reader, marked] });
  const outcomes = async (): Promise<void> => {
    const client = await createClient();
    const { output } = await client.result(await client.start(person, { message: 'x' }));
    expectTypeOf(output).toEqualTypeOf<{ name: string; tags?: string[] | undefined } | null>();
    const read = await client.result(await client.start(reader, { message: 'x' }));
    expectTypeOf(read.output).toEqualTypeOf<number | null>();
  };
  expectTypeOf(outcomes).toBeFunction();
});
