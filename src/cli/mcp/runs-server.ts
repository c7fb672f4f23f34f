import { McpServer } from '@modelcontextprotocol/server';
import type { Client } from '@temporalio/client';
import { z } from 'zod';
import { agentProblem } from '../../client/fork-run.js';
import { toRunStatus, waitForResult } from '../../client/status.js';
import { IdTakenError, InputError } from '../../core/errors.js';
import type { RunInput } from '../../core/input/input.js';
import { type RunStatus, isOpenStatus } from '../../core/state/status.js';
import { visible } from '../../core/state/summaries.js';
import { canonicalJson, sha256Hex } from '../../core/text/json.js';
import { readRun } from '../../history/read-run.js';
import { ownVersion } from '../../storage/files.js';
import { createRunInput, startRun } from '../../updates/start.js';
import { CommandError } from '../context.js';
import { runnableStatus } from '../reports/next-command.js';
import {
  type RunsAccess,
  clientFor,
  mcpClaim,
  operationId,
  ownedMemo,
  requireOwnRun,
  runId,
} from './owner.js';
import {
  addControlTools,
  addDecideTools,
  endedAnswer,
  failedResult,
  resultAnswer,
  statusAnswer,
  toStatusAnswer,
  toolResult,
  unfinishedAnswer,
  withErrorCode,
} from './tools.js';

const WAIT_SECONDS = 20;
const MAX_WAIT_SECONDS = 300;

/** Adds the tools that read runs. They need no worker. */
function addReadTools(server: McpServer, access: RunsAccess): void {
  const { archive } = access;
  const readStatus = async (id: string): Promise<RunStatus> =>
    runnableStatus(
      access,
      toRunStatus(await readRun(await clientFor(access, id), id, { archive }), Date.now()),
    );
  server.registerTool(
    'agent_status',
    {
      description:
        'Returns what a run is doing, what it waits for, or how it ended. Needs no worker.',
      inputSchema: z.strictObject({ id: runId }),
      outputSchema: statusAnswer,
      annotations: { readOnlyHint: true },
    },
    withErrorCode(async ({ id }) => toolResult(toStatusAnswer(await readStatus(id)))),
  );
  server.registerTool(
    'agent_result',
    {
      description:
        "Waits for a run's answer (of an open run: of its newest turn) and returns it. " +
        'If done is false, the run is still working; ask again.',
      inputSchema: z.strictObject({
        id: runId,
        wait_seconds: z
          .number()
          .min(0)
          .max(MAX_WAIT_SECONDS)
          .optional()
          .describe(`default ${WAIT_SECONDS}; many clients give up after 60`),
      }),
      outputSchema: resultAnswer,
      annotations: { readOnlyHint: true },
    },
    withErrorCode(async ({ id, wait_seconds: seconds = WAIT_SECONDS }, { mcpReq }) => {
      const now = await readStatus(id);
      if (!isOpenStatus(now.status) && now.outcome !== null) {
        return toolResult(endedAnswer(id, now.outcome));
      }
      const client = await clientFor(access, id);
      const outcome = await withinSeconds(seconds, mcpReq.signal, (signal) =>
        waitForResult(client, id, { signal, archive }),
      );
      return toolResult(
        outcome === null ? unfinishedAnswer(await readStatus(id)) : endedAnswer(id, outcome),
      );
    }),
  );
}

/** Runs abortable work for a limited time. Returns null on timeout; throws if the caller aborts. */
async function withinSeconds<T>(
  seconds: number,
  caller: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const timeout = AbortSignal.timeout(seconds * 1_000);
  try {
    return await work(AbortSignal.any([timeout, caller]));
  } catch (error) {
    caller.throwIfAborted();
    if (timeout.aborted && error === timeout.reason) return null;
    throw error;
  }
}

/** Adds the tools that list and start agents. */
function addStartTools(
  server: McpServer,
  { agents, taskQueue, client, ensureWorker, owner }: RunsAccess,
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
    () => toolResult({ agents: agents.map(({ name, description }) => ({ name, description })) }),
  );
  server.registerTool(
    'agent_start',
    {
      description:
        'Starts an agent on a task and returns at once. The run survives crashes and restarts; ' +
        `read its result with agent_result. Available agents: ${names || 'none'}.`,
      inputSchema: z.strictObject({
        agent: z.string().min(1),
        message: z
          .string()
          .min(1)
          .optional()
          .describe('the task; may be omitted for a graph with input, and with open: true'),
        input: z
          .record(z.string(), z.json())
          .optional()
          .describe('only for a graph: fields of its state'),
        operation_id: operationId,
        context: z.json().optional().describe("for the agent's tools; the model never sees it"),
        open: z.boolean().optional().describe('keep the run open for more messages by agent_send'),
      }),
      outputSchema: z.object({
        id: z.string(),
        repeated: z.boolean().describe('true: this operation had already started the run'),
      }),
    },
    withErrorCode(
      async ({ agent, message, input: fields, operation_id: operation, context, open }) => {
        const settings = {
          by: mcpClaim(),
          ...(message !== undefined && { message }),
          ...(fields !== undefined && { input: fields }),
          ...(context !== undefined && { context }),
          ...(open && { open }),
        };
        const input = createRunInput(agent, settings);
        // A worker elsewhere may have other agents.
        if ((await ensureWorker(taskQueue)) && !agents.some(({ name }) => name === agent)) {
          throw new CommandError(
            'usage',
            `agent: expected one of ${names || 'none'}; got ${JSON.stringify(agent)}`,
          );
        }
        // A worker elsewhere may have another version of an agent, but hardly one that reads less.
        const isKnown = agents.some(({ name }) => name === agent);
        const problem = isKnown ? agentProblem(agents, input) : null;
        if (problem !== null) throw new InputError(problem);
        const options = { operationId: operation, taskQueue, owner: await owner() };
        return toolResult({ ...(await startOnce(await client(), input, options)) });
      },
    ),
  );
}

interface StartedOnce {
  readonly id: string;
  /** The operation had already started the run, which may have ended by now. */
  readonly repeated: boolean;
}

const ID_DIGITS = 24;

/** Returns the id of the run that an operation of this owner starts. It is always the same. */
function runIdFor(owner: string, operation: string): string {
  return `mcp-${sha256Hex(`${owner} ${operation}`).slice(0, ID_DIGITS)}`;
}

/**
 * Starts the run of an operation, or finds the run that the operation has already started. Throws
 * if the operation started another run: a reused id must not look like a repeated request.
 */
async function startOnce(
  client: Client,
  input: RunInput,
  options: { operationId: string; taskQueue: string; owner: string },
): Promise<StartedOnce> {
  const { operationId: operation, taskQueue, owner } = options;
  const id = runIdFor(owner, operation);
  try {
    await startRun(client, input, { id, taskQueue, memo: ownedMemo(owner, id) });
    return { id, repeated: false };
  } catch (error) {
    if (!IdTakenError.isInstance(error)) throw error;
  }
  await requireOwnRun(client, { run: id, owner });
  const existing = await readRun(client, id);
  const before = existing.view.input;
  // The input of a later segment has neither a message nor an input.
  const isSame =
    (before?.message ?? input.message) === input.message &&
    canonicalJson(before?.input ?? input.input ?? {}) === canonicalJson(input.input ?? {});
  if (existing.agent === input.agent && isSame) return { id, repeated: true };
  const difference =
    existing.agent === input.agent
      ? 'with another message or input'
      : `of agent ${visible(existing.agent)}`;
  throw new IdTakenError(
    `operation_id: expected a new id, got ${JSON.stringify(operation)}, which started run ${id} ` +
      `${difference}; choose a new one, or read that run with agent_status`,
  );
}

/** Creates an MCP server whose tools start runs of agents, send them messages, and read them. */
export function runsServer(access: RunsAccess): McpServer {
  const server = new McpServer({ name: 'perdure', version: ownVersion() });
  // The SDK itself refuses arguments that do not fit a tool's schema; its result has no code.
  Object.defineProperty(server, 'createToolError', {
    value: (message: string) => failedResult(message, 'input'),
  });
  addStartTools(server, access);
  addReadTools(server, access);
  addControlTools(server, access);
  if (access.canDecide) addDecideTools(server, access);
  return server;
}
