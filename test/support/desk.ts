import type { Agent } from '../../src/agents/agent.js';
import type { PerdureClient, StartOptions } from '../../src/client/client-types.js';
import type { Message } from '../../src/core/transcript/messages.js';
import type { Outcome } from '../../src/core/outcome.js';
import type { ModelEntry } from '../../src/models/model-catalog.js';
import { getFirstUserText, type StubRequest } from '../../src/testing/requests.js';
import type { StubMessage } from '../../src/testing/stub-message.js';
import type { Step } from '../../src/testing/steps.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { clientOf } from './clerk.js';
import { taken } from './taken.js';
import { createRig, type Ended, type Rig } from './rig.js';

type Start = Partial<StartOptions>;

/** What became of a run, as its caller, its reader and its model saw it. */
export interface Told extends Ended {
  readonly messages: readonly Message[];
  /** What was sent to the model, in order. */
  readonly requests: readonly StubRequest[];
}

/** A run that waits for more. */
export interface OpenRun {
  readonly id: string;
  /** Of the first turn. */
  readonly first: Outcome;
  /** Says something, and waits for the end of the turn that it begins. */
  ask(message: string): Promise<Outcome>;
  close(): Promise<Told>;
}

/** A worker with these agents, their client, and the stub that answers for their models. */
export interface Desk {
  readonly rig: Rig;
  readonly stub: Stub;
  readonly client: PerdureClient;
  /** A text that names a conversation of its own, for which the stub answers by these steps. */
  conversation(...steps: readonly Step[]): string;
  requestsOf(conversation: string): readonly StubRequest[];
  /** Starts a run by the client, waits for its end, and checks that its steps were all used. */
  run(agent: string, steps: readonly Step[], start?: Start): Promise<Told>;
  /** Starts an open run by its first message and waits for the end of that turn. */
  open(agent: string, steps: readonly Step[], start?: Start): Promise<OpenRun>;
  /** What there is to tell of a run that has ended; checks that its history replays. */
  tell(id: string, conversation: string): Promise<Told>;
  close(): Promise<void>;
}

/** `models` by the name that agents give, each as the config would have it; the stub is behind those without code. */
export async function openDesk(
  agents: readonly Agent[],
  models: Readonly<Record<string, ModelEntry>> = { m: {} },
): Promise<Desk> {
  const [rig, stub] = [await createRig(), await startStub()];
  const client = await clientOf(rig);
  const entries = Object.entries(models).map(([name, entry]) => [
    name,
    'call' in entry ? entry : { ...entry, baseUrl: stub.baseUrl },
  ]);
  await rig.worker(agents, { models: Object.fromEntries(entries) });
  let serial = 0;

  const desk: Desk = {
    rig,
    stub,
    client,
    conversation(...steps) {
      serial += 1;
      const question = `question [${serial}]`;
      stub.scriptFor(question, ...steps);
      return question;
    },
    requestsOf(conversation) {
      return stub.requests.filter((request) => getFirstUserText(request).includes(conversation));
    },
    async run(agent, steps, start = {}) {
      const message = desk.conversation(...steps);
      const { id } = await client.start(agent, { message, ...start });
      const outcome = await client.result(id);
      const told = await desk.tell(id, message);
      stub.assertConsumed();
      return { ...told, outcome };
    },
    async open(agent, steps, start = {}) {
      const message = desk.conversation(...steps);
      const { id } = await client.start(agent, { message, ...start, open: true });
      return {
        id,
        first: await client.result(id, { turn: 1 }),
        async ask(text) {
          const { turn } = await taken(client.ask(id, text));
          return await client.result(id, { turn });
        },
        async close() {
          await client.close(id);
          stub.assertConsumed();
          return await desk.tell(id, message);
        },
      };
    },
    async tell(id, conversation) {
      const ended = await rig.end(rig.client.workflow.getHandle(id));
      const { messages } = await client.transcript(id);
      return { ...ended, messages, requests: desk.requestsOf(conversation) };
    },
    async close() {
      await client.disconnect();
      await rig.close();
      await stub.close();
    },
  };
  return desk;
}

/** Roles and texts, for comparing a conversation at a glance. */
export function spoken(messages: readonly Message[]): readonly (readonly [string, string])[] {
  return messages.map(({ role, text }) => [role, text] as const);
}

/** The same of a request, instructions included. */
export function sent(request: StubRequest | undefined): readonly (readonly [string, unknown])[] {
  return (request?.messages ?? []).map(
    ({ role, content }: StubMessage) => [role, content] as const,
  );
}
