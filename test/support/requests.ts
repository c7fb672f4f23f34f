import type { WorkflowHandle } from '@temporalio/client';
import { expect, vi } from 'vitest';
import type { Agent } from '../../src/agents/agent.js';
import type { RunInput } from '../../src/core/input/input.js';
import type { Decision, DecisionReceipt, Request } from '../../src/core/transcript/request.js';
import type { RunStatus } from '../../src/core/state/status.js';
import type { Model, ModelReply, ModelRequest } from '../../src/models/model.js';
import { replyText } from '../../src/testing/replies.js';
import { statusQuery, resolveUpdate } from '../../src/workflows/messages/definitions.js';
import type { RunningWorker } from '../../src/worker/create-worker.js';
import { createRig, type Ended, type Rig } from './rig.js';
import { statusWhere } from './status-where.js';

/** One reply of the scripted model: a text, a call as `{ tool: arguments }`, or several calls. */
export type Line =
  | string
  | Readonly<Record<string, object>>
  | readonly Readonly<Record<string, object>>[];

type WorkerRest = Parameters<Rig['worker']>[1];

/** A rig for runs that wait for people. */
export interface Desk {
  readonly rig: Rig;
  /** The effects of the tools, in order. */
  readonly done: readonly string[];
  /** Records an effect of a tool. */
  did(effect: string): void;
  /** Waits until a tool has had this effect. */
  untilDone(effect: string): Promise<void>;
  reset(): void;
  /** Sets the replies of the next run. The model is `script`. */
  script(lines: readonly Line[]): void;
  work(agents: readonly Agent[], rest?: WorkerRest): Promise<RunningWorker>;
  run(input: RunInput): Promise<Ended>;
  /** Starts a run, and waits until it raises a request. */
  asked(input: RunInput): Promise<{ handle: WorkflowHandle; requests: readonly Request[] }>;
  statusWhere(handle: WorkflowHandle, fits: (status: RunStatus) => boolean): Promise<RunStatus>;
  /** Decides the oldest request. */
  decide(
    handle: WorkflowHandle,
    decision: Omit<Decision, 'request' | 'digest'>,
    updateId?: string,
  ): Promise<readonly DecisionReceipt[]>;
  decideAll(
    handle: WorkflowHandle,
    decisions: readonly Decision[],
  ): Promise<readonly DecisionReceipt[]>;
  end(handle: WorkflowHandle): Promise<Ended>;
  /** The results that the model has read last. */
  lastResults(): readonly string[];
  close(): Promise<void>;
}

export async function createDesk(own?: Rig): Promise<Desk> {
  const rig = own ?? (await createRig());
  let lines: Line[] = [];
  let done: string[] = [];
  let last: ModelRequest | null = null;
  const script: Model = {
    call: (request) => {
      last = request;
      return Promise.resolve(toReply(lines.shift() ?? 'The script is over.'));
    },
  };
  const statusOf = async (handle: WorkflowHandle): Promise<RunStatus> =>
    await handle.query(statusQuery);
  const desk: Desk = {
    rig,
    get done() {
      return done;
    },
    did: (effect) => void done.push(effect),
    untilDone: async (effect) =>
      await vi.waitFor(() => expect(done).toContain(effect), { timeout: 20_000, interval: 20 }),
    reset() {
      done = [];
      lines = [];
    },
    script: (given) => (lines = [...given]),
    work: async (agents, rest) =>
      await rig.worker(agents, { ...rest, models: { script, ...rest?.models } }),
    run: async (input) => await rig.run(input),
    async asked(input) {
      const handle = await rig.start(input);
      const { pending } = await desk.statusWhere(
        handle,
        ({ status }) => status === 'waiting_decision',
      );
      return { handle, requests: pending };
    },
    statusWhere,
    async decide(handle, decision, updateId) {
      const [request] = (await statusOf(handle)).pending;
      if (request === undefined) throw new Error('nothing is asked');
      const { id, digest } = request;
      const args: [Decision] = [{ request: id, digest, ...decision }];
      const options = updateId === undefined ? { args } : { args, updateId };
      return (await handle.executeUpdate(resolveUpdate, options)).resolved;
    },
    async decideAll(handle, decisions) {
      return (await handle.executeUpdate(resolveUpdate, { args: [decisions] })).resolved;
    },
    end: async (handle) => await rig.end(handle),
    lastResults() {
      const messages = last?.messages ?? [];
      const from = messages.findLastIndex(({ role }) => role === 'assistant');
      return messages.slice(from).flatMap((one) => (one.role === 'tool' ? [one.text] : []));
    },
    close: async () => await rig.close(),
  };
  return desk;
}

function toReply(line: Line): ModelReply {
  if (typeof line === 'string') return replyText(line);
  const calls = (Array.isArray(line) ? line : [line]) as readonly Readonly<
    Record<string, object>
  >[];
  return {
    ...replyText(''),
    finish: 'calls',
    calls: calls.flatMap((call) =>
      Object.entries(call).map(([name, args]) => ({ name, arguments: JSON.stringify(args) })),
    ),
  };
}
