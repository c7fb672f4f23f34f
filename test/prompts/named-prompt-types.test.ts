import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { createClient, defineAgent, template } from '../../src/index.js';
import { classify, type Classification } from '../../src/output.js';

test('the arguments and the output of each named prompt reach the client', () => {
  const planner = defineAgent({
    name: 'planner',
    instructions: 'x',
    output: z.object({ reply: z.string() }),
    prompts: {
      plan: {
        text: template('Plan a trip to {{city}}.', { args: ['city'] }),
        output: z.object({ steps: z.array(z.string()) }),
      },
      report: { text: 'Report.', output: (text) => text.length },
      mood: { text: 'How is it?', output: classify(['good', 'bad']) },
      reply: { text: template('Days: {{n}}', { args: z.object({ n: z.int().optional() }) }) },
    },
  });
  const uses = async (): Promise<void> => {
    const client = await createClient();
    const run = await client.start(planner, { open: true });
    const sent = await client.send(run, { prompt: 'plan', args: { city: 'Rome' } });
    if (!sent.delivered) return;
    const plan = await client.result(run, { turn: sent.turn });
    expectTypeOf(plan.output).toEqualTypeOf<{ steps: string[] } | null>();
    const report = await client.send(run, { prompt: 'report' });
    if (!report.delivered) return;
    const { output } = await client.result(run, { turn: report.turn });
    expectTypeOf(output).toEqualTypeOf<number | null>();
    const mood = await client.send(run, { prompt: 'mood', id: 'm' });
    if (!mood.delivered) return;
    const classified = await client.result(run, { turn: mood.turn });
    expectTypeOf(classified.output).toEqualTypeOf<Classification<'good' | 'bad'> | null>();
    const reply = await client.send(run, { prompt: 'reply', args: { n: 3 } });
    if (!reply.delivered) return;
    const replied = await client.result(run, { turn: reply.turn });
    expectTypeOf(replied.output).toEqualTypeOf<{ reply: string } | null>();
    // The turn of a message without a prompt has the agent's output.
    const plain = await client.send(run, { message: 'Hello' });
    if (!plain.delivered) return;
    const answered = await client.result(run, { turn: plain.turn });
    expectTypeOf(answered.output).toEqualTypeOf<{ reply: string } | null>();
    const task = await client.start(planner, { prompt: 'plan', promptArgs: { city: 'Rome' } });
    const done = await client.result(task);
    expectTypeOf(done.output).toEqualTypeOf<{ steps: string[] } | null>();
    await client.send('some-run', { prompt: 'any', args: { any: 1 } });

    // @ts-expect-error a misspelled prompt
    await client.send(run, { prompt: 'plam', args: { city: 'Rome' } });
    // @ts-expect-error a missing argument
    await client.send(run, { prompt: 'plan' });
    // @ts-expect-error a misspelled argument
    await client.send(run, { prompt: 'plan', args: { town: 'Rome' } });
    // @ts-expect-error an argument of another type
    await client.send(run, { prompt: 'reply', args: { n: 'three' } });
    // @ts-expect-error a prompt has the text
    await client.send(run, { prompt: 'report', message: 'Hello' });
    // @ts-expect-error a misspelled prompt at the start
    await client.start(planner, { prompt: 'plam', promptArgs: { city: 'Rome' } });
    // @ts-expect-error a missing argument at the start
    await client.start(planner, { prompt: 'plan' });
    // @ts-expect-error a misspelled field of a message
    await client.send(run, { message: 'Hello', mod: 'steer' });
  };
  expectTypeOf(uses).toBeFunction();
});
