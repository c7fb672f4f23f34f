import { McpServer } from '@modelcontextprotocol/server';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { z } from 'zod';
import { cancelTurn, askRun } from '../../updates/control.js';
import { describeRun, readRun } from '../../history/read-run.js';
import { waitForResult } from '../../client/result.js';
import { createRunInput } from '../../updates/run-input.js';
import { toRunStatus } from '../../client/status.js';
import type { RunStatus } from '../../core/status.js';
import { ownVersion } from '../../version.js';
import { ended, resultAnswer, statusAnswer, statusOf, told, unfinished } from './answers.js';
import { osUser } from '../input/os-user.js';
import { requireOwnRun } from './owner.js';
import { startOnce } from './start-once.js';
import { withinSeconds } from './within-seconds.js';

/** What the server needs of the command. */
export interface RunsAccess {
  readonly agents: readonly { readonly name: string; readonly description: string }[];
  readonly taskQueue: string;
  readonly client: () => Promise<Client>;
  /** Resolves when somebody works on the queue. @returns whether that is this process */
  readonly worked: (taskQueue: string) => Promise<boolean>;
  /** Marks the runs that this server starts. */
  readonly owner: () => Promise<string>;
  /** It answers for all runs of the namespace, and not only for those that it has started. */
  readonly allRuns: boolean;
}

/** The client, for this run. Rejects with a `NoRunError` where the server does not answer for it. */
async function clientFor({ client, owner, allRuns }: RunsAccess, run: string): Promise<Client> {
  const connected = await client();
  if (!allRuns) await requireOwnRun(connected, run, await owner());
  return connected;
}

const id = z.string().min(1).describe('the run, as agent_start gave it');
const operationId = z
  .string()
  .min(1)
  .max(200)
  .describe(
    'made up by you, new for each new thing to do; repeated with the same one, it is done once',
  );
const WAIT_SECONDS = 20;
const LONGEST_WAIT_SECONDS = 300;
/** Many clients give up after a minute. */
const PATIENCE = { withinMs: 45_000 };
/** The program that asks says nothing of who it is that can be believed. */
const claimed = (): string => `MCP client, ${osUser()}`;

/** An MCP server whose tools start runs of agents, talk to them and read them. */
export function runsServer(access: RunsAccess): McpServer {
  const server = new McpServer({ name: 'perdure', version: ownVersion() });
  addStarts(server, access);
  addReaders(server, access);
  addControls(server, access);
  return server;
}

function addStarts(
  server: McpServer,
  { agents, taskQueue, client, worked, owner }: RunsAccess,
): void {
  const names = agents.map(({ name }) => name).join(', ');
  server.registerTool(
    'agent_list',
    {
      description: 'Lists the agents that can be started.',
      outputSchema: z.object({
        agents: z.array(z.object({ name: z.string(), description: z.string() })),
      }),
      annotations: { readOnlyHint: true },
    },
    () => told({ agents: agents.map(({ name, description }) => ({ name, description })) }),
  );
  server.registerTool(
    'agent_start',
    {
      description:
        'Starts an agent on a task and returns at once. The run survives crashes and restarts; ' +
        `read what came of it with agent_result. Agents here: ${names || 'none'}.`,
      inputSchema: z.strictObject({
        agent: z.string().min(1),
        message: z.string().min(1).describe('the task'),
        operation_id: operationId,
        context: z.json().optional().describe("for the agent's tools; the model never sees it"),
        open: z.boolean().optional().describe('let it wait for more messages, by agent_send'),
      }),
      outputSchema: z.object({
        id: z.string(),
        repeated: z.boolean().describe('the same operation had started it before'),
      }),
    },
    async ({ agent, message, operation_id: operation, context, open }) => {
      const given = { message, ...(context !== undefined && { context }), ...(open && { open }) };
      const input = createRunInput(agent, given);
      // A worker elsewhere may have other agents.
      if ((await worked(taskQueue)) && !agents.some(({ name }) => name === agent)) {
        throw new Error(
          `agent: there is no agent ${JSON.stringify(agent)}; there are ${names || 'none'}`,
        );
      }
      const how = { operationId: operation, taskQueue, owner: await owner() };
      return told({ ...(await startOnce(await client(), input, how)) });
    },
  );
}

function addReaders(server: McpServer, access: RunsAccess): void {
  const status = async (run: string): Promise<RunStatus> =>
    toRunStatus(await readRun(await clientFor(access, run), run), Date.now());
  server.registerTool(
    'agent_status',
    {
      description: 'Tells what a run does, waits for or has come to. Needs no worker.',
      inputSchema: z.strictObject({ id }),
      outputSchema: statusAnswer,
      annotations: { readOnlyHint: true },
    },
    async (asked) => told(statusOf(await status(asked.id))),
  );
  server.registerTool(
    'agent_result',
    {
      description:
        'Waits for the answer of a run (of an open one: of its newest turn) and gives it. ' +
        'With done: false it is still at work; ask again.',
      inputSchema: z.strictObject({
        id,
        wait_seconds: z
          .number()
          .min(0)
          .max(LONGEST_WAIT_SECONDS)
          .optional()
          .describe(`default ${WAIT_SECONDS}; many clients give up after 60`),
      }),
      outputSchema: resultAnswer,
      annotations: { readOnlyHint: true },
    },
    async ({ id: run, wait_seconds: seconds = WAIT_SECONDS }, { mcpReq }) => {
      const now = await status(run);
      if (now.status === 'done' && now.outcome !== null) return told(ended(run, now.outcome));
      const outcome = await withinSeconds(seconds, mcpReq.signal, async (signal) =>
        waitForResult(await clientFor(access, run), run, { signal }),
      );
      return told(outcome === null ? unfinished(await status(run)) : ended(run, outcome));
    },
  );
}

async function queueOf(client: Client, run: string): Promise<string> {
  return (await describeRun(client, run)).taskQueue;
}

function addControls(server: McpServer, access: RunsAccess): void {
  const { worked } = access;
  server.registerTool(
    'agent_send',
    {
      description:
        'Gives a run that was started with open: true its next message; read the answer with agent_result.',
      inputSchema: z.strictObject({
        id,
        message: z.string().min(1),
        operation_id: operationId,
        steer: z.boolean().optional().describe('join the turn under way, before its next step'),
      }),
      outputSchema: z.object({
        id: z.string(),
        delivered: z
          .boolean()
          .describe('false: it is recorded, and a worker takes it when one comes'),
        turn: z.number().nullable(),
      }),
    },
    async ({ id: run, message, operation_id: operation, steer }) => {
      const client = await clientFor(access, run);
      await worked(await queueOf(client, run));
      const ask = {
        id: operation,
        message,
        by: claimed(),
        ...(steer && { mode: 'steer' as const }),
      };
      const sent = await askRun(client, run, ask, PATIENCE).catch(inToolTerms);
      const { delivered } = sent;
      return told({ id: run, delivered, turn: sent.delivered ? sent.turn : null });
    },
  );
  server.registerTool(
    'agent_cancel',
    {
      description:
        'Ends a run, or with `turn` only this turn of an open one. What it has done is kept.',
      inputSchema: z.strictObject({
        id,
        turn: z.number().int().min(1).optional().describe('as agent_send and agent_status tell it'),
      }),
      outputSchema: z.object({ id: z.string(), cancelled: z.enum(['run', 'turn']) }),
      annotations: { destructiveHint: true, idempotentHint: true },
    },
    async ({ id: run, turn }) => {
      const client = await clientFor(access, run);
      if (turn !== undefined) {
        await worked(await queueOf(client, run));
        await cancelTurn(client, run, { turn, by: claimed(), ...PATIENCE });
        return told({ id: run, cancelled: 'turn' });
      }
      await describeRun(client, run);
      await cancelRun(client, run);
      return told({ id: run, cancelled: 'run' });
    },
  );
}

/** One that has ended meanwhile needs no cancel. */
async function cancelRun(client: Client, run: string): Promise<void> {
  try {
    await client.workflow.getHandle(run).cancel();
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}

/** What a run says in the words of its own input, in those of the tools here. */
function inToolTerms(error: unknown): never {
  if (!(error instanceof Error)) throw error;
  const message = error.message
    .replaceAll('mode "steer"', 'steer: true')
    .replaceAll('"open": true', 'open: true')
    .replace(/^id: /, 'operation_id: ');
  throw new Error(message, { cause: error });
}
