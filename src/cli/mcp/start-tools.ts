import { CommandError } from '../exit-codes.js';
import type { McpServer } from '@modelcontextprotocol/server';
import type { Client } from '@temporalio/client';
import { z } from 'zod';
import { sha256Hex } from '../../core/digest.js';
import { agentProblem } from '../../client/known-agents.js';
import { IdTakenError, InputError } from '../../core/errors.js';
import { canonicalJson } from '../../core/json.js';
import type { RunInput } from '../../core/input/input.js';
import { visible } from '../../core/text/summaries.js';
import { readRun } from '../../history/read-run.js';
import { createRunInput } from '../../updates/run-input.js';
import { startRun } from '../../updates/start.js';
import { mcpClaim, operationId, type RunsAccess } from './access.js';
import { toolResult, withErrorCode } from './answers.js';
import { ownedMemo, requireOwnRun } from './owner.js';

/** Adds the tools that list and start agents. */
export function addStartTools(
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
