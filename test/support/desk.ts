import type { Agent } from '../../src/agents/define-agent.js';
import type { PerdureClient, StartOptions } from '../../src/client/client-types.js';
import type { Message } from '../../src/core/messages.js';
import type { Outcome } from '../../src/core/outcome.js';
import type { ModelOptions } from '../../src/models/catalog.js';
import { firstUserText, type StubRequest } from '../../src/testing/requests.js';
import type { Step } from '../../src/testing/steps.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { clientOf } from './clerk.js';
import { createRig, type Ended, type Rig } from './rig.js';

type Start = Partial<StartOptions>;

/** What became of a run, as its caller, its reader and its model saw it. */
export interface Told extends Ended {
  readonly outcome: Outcome;
  readonly messages: readonly Message[];
  /** What was sent to the model, in order. */
  readonly requests: readonly StubRequest[];
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
  /** What there is to tell of a run that has ended; checks that its history replays. */
  tell(id: string, conversation: string): Promise<Told>;
  close(): Promise<void>;
}

/** `models` by the name that agents give, each with what the config would say; all are the stub. */
export async function openDesk(
  agents: readonly Agent[],
  models: Readonly<Record<string, ModelOptions>> = { m: {} },
): Promise<Desk> {
  const [rig, stub] = [await createRig(), await startStub()];
  const client = await clientOf(rig);
  const entries = Object.entries(models).map(([name, entry]) => [
    name,
    { ...entry, baseUrl: stub.baseUrl },
  ]);
  await rig.worker(agents, { models: Object.fromEntries(entries) });
  let serial = 0;

  const desk: Desk = {
    rig,
    stub,
    client,
    conversation(...steps) {
      serial += 1;
      const marker = `[${serial}]`;
      stub.scriptFor(marker, ...steps);
      return `question ${marker}`;
    },
    requestsOf(conversation) {
      return stub.requests.filter((request) => firstUserText(request).includes(conversation));
    },
    async run(agent, steps, start = {}) {
      const message = desk.conversation(...steps);
      const { id } = await client.start(agent, { message, ...start });
      await client.result(id);
      const told = await desk.tell(id, message);
      stub.assertConsumed();
      return told;
    },
    async tell(id, conversation) {
      const ended = await rig.end(rig.client.workflow.getHandle(id));
      const outcome = await client.result(id);
      const { messages } = await client.transcript(id);
      return { ...ended, outcome, messages, requests: desk.requestsOf(conversation) };
    },
    async close() {
      await client.close();
      await rig.close();
      await stub.close();
    },
  };
  return desk;
}
