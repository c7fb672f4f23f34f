import type { Agent } from '../../src/agents/agent.js';
import type { PerdureClient, StartOptions } from '../../src/client/client-types.js';
import type { Message } from '../../src/core/transcript/messages.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import type { ModelEntry } from '../../src/models/model-entry.js';
import {
  getFirstUserText,
  type StubRequest,
  type StubMessage,
} from '../../src/testing/wire-input.js';
import type { Reply } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import type { WorkerOptions } from '../../src/worker/options.js';
import { clientOf } from './clerk.js';
import { expectDelivered } from './delivered.js';
import { createRig, type Ended, type Rig } from './rig.js';

type Start = Partial<StartOptions>;

/** The result of a run, as its caller, its reader, and its model saw it. */
export interface RunReport extends Ended {
  readonly messages: readonly Message[];
  /** The requests to the model, in order. */
  readonly requests: readonly StubRequest[];
}

/** An open run. */
export interface OpenRun {
  readonly id: string;
  /** The result of the first turn. */
  readonly first: Outcome;
  /** Sends a message, and waits for the end of the turn that it begins. */
  ask(message: string): Promise<Outcome>;
  close(): Promise<RunReport>;
}

/** A worker with these agents, their client, and the stub that serves their models. */
export interface Desk {
  readonly rig: Rig;
  readonly stub: Stub;
  readonly client: PerdureClient;
  /**
   * Returns a text that identifies a new conversation, for which the stub answers with these steps.
   */
  conversation(...steps: readonly Reply[]): string;
  requestsOf(conversation: string): readonly StubRequest[];
  /** Starts a run with the client, waits for its end, and checks that its steps were all used. */
  run(agent: string, steps: readonly Reply[], start?: Start): Promise<RunReport>;
  /** Starts an open run with its first message and waits for the end of that turn. */
  open(agent: string, steps: readonly Reply[], start?: Start): Promise<OpenRun>;
  /** Collects the result of a run that has ended; checks that its history replays. */
  report(id: string, conversation: string): Promise<RunReport>;
  close(): Promise<void>;
}

interface DeskOptions extends Pick<WorkerOptions, 'segment'> {
  /** Default: a rig on the server. */
  readonly rig?: Rig;
  /** False for replies that do not fit their schema, as servers without strict schemas send them. */
  readonly enforces?: boolean;
}

/** `models`, by the names that agents use, as in the config; the stub serves those without code. */
export async function openDesk(
  agents: readonly Agent[],
  models: Readonly<Record<string, ModelEntry>> = { m: {} },
  { enforces = true, rig: given, ...rest }: DeskOptions = {},
): Promise<Desk> {
  const [rig, stub] = [given ?? (await createRig()), await startStub({ enforces })];
  const client = await clientOf(rig);
  const entries = Object.entries(models).map(([name, entry]) => [
    name,
    'call' in entry ? entry : { ...entry, baseUrl: stub.baseUrl },
  ]);
  await rig.worker(agents, { models: Object.fromEntries(entries), ...rest });
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
      const report = await desk.report(id, message);
      stub.assertConsumed();
      return { ...report, outcome };
    },
    async open(agent, steps, start = {}) {
      const message = desk.conversation(...steps);
      const { id } = await client.start(agent, { message, ...start, open: true });
      return {
        id,
        first: await client.result(id, { turn: 1 }),
        async ask(text) {
          const { turn } = await expectDelivered(client.send(id, text));
          return await client.result(id, { turn });
        },
        async close() {
          await client.close(id);
          stub.assertConsumed();
          return await desk.report(id, message);
        },
      };
    },
    async report(id, conversation) {
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

/** Roles and texts, for comparing conversations. */
export function spoken(messages: readonly Message[]): readonly (readonly [string, string])[] {
  return messages.map(({ role, text }) => [role, text] as const);
}

/** The same for a request, instructions included. */
export function sent(request: StubRequest | undefined): readonly (readonly [string, unknown])[] {
  return (request?.messages ?? []).map(
    ({ role, content }: StubMessage) => [role, content] as const,
  );
}
