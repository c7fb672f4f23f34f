import type { McpServer } from '@modelcontextprotocol/server';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { z } from 'zod';
import { describeRun } from '../../history/read-run.js';
import { askRun } from '../../updates/ask-run.js';
import { cancelTurn } from '../../updates/control.js';
import {
  clientFor,
  mcpClaim,
  operationId,
  runId,
  UPDATE_TIMEOUT,
  type RunsAccess,
} from './access.js';
import { toolResult, withErrorCode } from './answers.js';

/** The request that a message answers. Only with the option that lets the client decide. */
const answered = z
  .strictObject({ request: z.string().min(1), digest: z.string().min(1) })
  .optional()
  .describe('only to decide with this message: the request and its digest, from list_requests');

const sendInput = z.strictObject({
  id: runId,
  message: z.string().min(1),
  operation_id: operationId,
  steer: z.boolean().optional().describe('join the current turn, before its next step'),
});
const decidingSend = sendInput.extend({ answers: answered });
type SendInput = z.infer<typeof sendInput> & Partial<z.infer<typeof decidingSend>>;

/** Adds the tools that send messages to runs and cancel them. */
export function addControlTools(server: McpServer, access: RunsAccess): void {
  const { ensureWorker, canDecide } = access;
  server.registerTool(
    'agent_send',
    {
      description:
        'Sends the next message to a run that was started with open: true; read the answer with agent_result.',
      inputSchema: canDecide ? decidingSend : sendInput,
      outputSchema: z.object({
        id: z.string(),
        delivered: z
          .boolean()
          .describe('false: the message is recorded, and a later worker delivers it'),
        turn: z.number().nullable(),
      }),
    },
    withErrorCode(async ({ id, message, operation_id: operation, steer, answers }: SendInput) => {
      const client = await clientFor(access, id);
      await ensureWorker(await taskQueueOf(client, id));
      const ask = {
        id: operation,
        message,
        by: mcpClaim(),
        // Without what it answers, a message decides nothing.
        answers: (canDecide && answers) || false,
        ...(steer && { mode: 'steer' as const }),
      };
      const sent = await askRun(client, id, ask, UPDATE_TIMEOUT).catch(rethrowInToolTerms);
      const { delivered } = sent;
      return toolResult({ id, delivered, turn: sent.delivered ? sent.turn : null });
    }),
  );
  server.registerTool(
    'agent_cancel',
    {
      description:
        'Cancels a run or, with `turn`, only that turn of an open run. What it has done is kept.',
      inputSchema: z.strictObject({
        id: runId,
        turn: z.number().int().min(1).optional().describe('from agent_send or agent_status'),
      }),
      outputSchema: z.object({ id: z.string(), cancelled: z.enum(['run', 'turn']) }),
      annotations: { destructiveHint: true, idempotentHint: true },
    },
    withErrorCode(async ({ id, turn }) => {
      const client = await clientFor(access, id);
      if (turn !== undefined) {
        await ensureWorker(await taskQueueOf(client, id));
        await cancelTurn(client, id, { turn, by: mcpClaim(), ...UPDATE_TIMEOUT });
        return toolResult({ id, cancelled: 'turn' });
      }
      await describeRun(client, id);
      await cancelRun(client, id);
      return toolResult({ id, cancelled: 'run' });
    }),
  );
}

async function taskQueueOf(client: Client, id: string): Promise<string> {
  return (await describeRun(client, id)).taskQueue;
}

/** Cancels a run. Does nothing if the run has ended in the meantime. */
async function cancelRun(client: Client, id: string): Promise<void> {
  try {
    await client.workflow.getHandle(id).cancel();
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}

/** Replaces the field names of a run's input by those of the tools. */
function rethrowInToolTerms(error: unknown): never {
  if (!(error instanceof Error)) throw error;
  const message = error.message
    .replaceAll('mode "steer"', 'steer: true')
    .replaceAll('"open": true', 'open: true')
    .replace(/^id: /, 'operation_id: ');
  throw new Error(message, { cause: error });
}
