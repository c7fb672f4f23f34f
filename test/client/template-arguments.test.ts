import type { Client } from '@temporalio/client';
import { expect, test } from 'vitest';
import {
  createClient,
  defineAgent,
  defineConfig,
  type PerdureClient,
  template,
} from '../../src/index.js';

/** No call may reach the server. */
const READS_NOTHING = { loadedDataConverter: { payloadCodecs: [] } };
const unreachable = { workflow: {}, schedule: {}, connection: {}, options: READS_NOTHING };

const guide = defineAgent({
  name: 'guide',
  instructions: template('Show {{city}}.', { args: ['city'] }),
  prompts: { plan: { text: template('Plan {{days}} days.', { args: ['days'] }) } },
});
const args = { city: 'Rome' };
const MISSING = 'args.city: missing; the template of agent "guide" takes city';
const UNKNOWN = 'args: expected a field of the template of agent "guide", got "ctiy"';

/** What TypeScript refuses for an agent, and not for its name. */
const loose = (given: object): never => given as never;

type Start = (client: PerdureClient, agent: 'guide' | typeof guide) => unknown;

const CASES: readonly [string, Start, string][] = [
  ['start', (client, agent) => client.start(agent, loose({ message: 'x' })), MISSING],
  [
    'start with a misspelled one',
    (client, agent) => client.start(agent, 'x', loose({ args: { ctiy: 'Rome' } })),
    UNKNOWN,
  ],
  [
    'start with one of another type',
    (client, agent) => client.start(agent, 'x', loose({ args: { city: ['Rome'] } })),
    'args.city: ',
  ],
  [
    'start with a misspelled field',
    (client, agent) => client.start(agent, loose({ messsage: 'x' })),
    'messsage: expected a field of a message; did you mean message?',
  ],
  [
    'the first message with a misspelled field of the start',
    (client, agent) => client.send('r', 'x', loose({ start: { agent, limts: {} } })),
    'limts: expected a field of a message; did you mean limits?',
  ],
  [
    'a schedule with a misspelled field',
    (client, agent) =>
      client.schedule.create(loose({ id: 's', agent, mesage: 'x', every: '1 hour' })),
    '"mesage" is not an option; did you mean message?',
  ],
  ['run', (client, agent) => client.run(agent, 'x', loose({})), MISSING],
  [
    'a prompt',
    (client, agent) => client.start(agent, loose({ args, prompt: 'plan' })),
    'promptArgs.days: missing; the template of prompt "plan" takes days',
  ],
  [
    'the first message of a conversation',
    (client, agent) => client.send('r', 'x', loose({ start: { agent } })),
    MISSING,
  ],
  [
    'a schedule',
    (client, agent) =>
      client.schedule.create(loose({ id: 's', agent, message: 'x', every: '1 hour' })),
    MISSING,
  ],
  [
    'a batch',
    async (client, agent) => {
      const options = loose({ id: 'b', args: { ctiy: 'Rome' } });
      await client.batch(agent, ['x'], options).all();
    },
    UNKNOWN,
  ],
];

test.each(CASES)(
  '%s without an argument of a template is refused before the server is asked',
  async (_, start, problem) => {
    const client = unreachable as unknown as Client;
    const config = defineConfig({ agents: [guide] });
    await using known = await createClient({ client, config });
    await using unknown = await createClient({ client });
    for (const refused of [() => start(known, 'guide'), () => start(unknown, guide)]) {
      const asked = Promise.resolve().then(refused);
      await expect(asked).rejects.toMatchObject({ name: 'InputError' });
      await expect(asked).rejects.toThrow(problem);
    }
  },
);

test('a task of a batch without an argument is a failed outcome, and others have their own', async () => {
  const config = defineConfig({ agents: [guide] });
  await using client = await createClient({ client: unreachable as unknown as Client, config });
  const [lacking] = await client.batch('guide', ['x'], { id: 'b' }).all();
  expect(lacking?.outcome).toMatchObject({ status: 'failed', reason: 'input', error: MISSING });
  const tasks = [{ message: 'x', args: { city: 'Rome' } }];
  // Whatever is wrong next, it is not the arguments.
  await expect(client.batch('guide', tasks, { id: 'b' }).all()).rejects.not.toThrow(/args/);
});
