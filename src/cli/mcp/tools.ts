import type { CallToolResult, McpServer } from '@modelcontextprotocol/server';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { z } from 'zod';
import { toRunStatus } from '../../client/status.js';
import { shownActions } from '../../core/plan/confirm-plan.js';
import { presentRequest } from '../../core/requests/presentation.js';
import { RUN_STATUSES, type RunStatus, statusName } from '../../core/state/status.js';
import { visible } from '../../core/state/summaries.js';
import { type Json, isObject } from '../../core/text/json.js';
import { printable } from '../../core/text/text.js';
import type { Outcome } from '../../core/transcript/outcome.js';
import {
  type Decision,
  type DecisionKind,
  OFFERED,
  type Request,
} from '../../core/transcript/request.js';
import { describeRun, readRun } from '../../history/read-run.js';
import { redactMessage } from '../../secrets/redact.js';
import { askRun } from '../../updates/ask.js';
import { cancelTurn, resolveRequests } from '../../updates/decide.js';
import { CommandError, type ErrorCode } from '../context.js';
import { errorCode, runnableStatus } from '../reports/next-command.js';
import {
  type RunsAccess,
  UPDATE_TIMEOUT,
  clientFor,
  mcpClaim,
  operationId,
  runId,
} from './owner.js';

/** The output of `agent_status`. */
export const statusAnswer = z.object({
  id: z.string(),
  agent: z.string(),
  status: z.string().describe(Object.keys(RUN_STATUSES).join(', ')),
  reason: z
    .string()
    .nullable()
    .describe('why the run ended, why it is blocked, or what kind of decision it waits for'),
  message: z.string().nullable().describe('for people: what is wrong, and the fix'),
  turn: z.number(),
  step: z.number(),
  queued: z.number().describe('messages that wait for a turn'),
  doing: z.string().nullable(),
  pending: z
    .array(
      z.object({
        request: z.string(),
        kind: z.string(),
        call: z.string().nullable(),
        tool: z.string().nullable(),
        shown: z.string().describe('what it is about, in one line'),
        fix: z.string(),
      }),
    )
    .describe("what needs a person's decision; `fix` is the command"),
});

/** The output of `agent_result`. */
export const resultAnswer = z.object({
  id: z.string(),
  done: z.boolean().describe('false: the turn is not over; ask again'),
  status: z
    .string()
    .describe(
      'as in agent_status; if the run continues, that of its newest turn once done is true',
    ),
  reason: z.string().nullable(),
  answer: z.string().nullable(),
  output: z.unknown().describe('the typed value, for agents with an output'),
  message: z.string().nullable().describe('what went wrong, or what the run waits for'),
  steps: z.number(),
  cost_usd: z.number().nullable(),
});

export function toStatusAnswer(status: RunStatus): z.infer<typeof statusAnswer> {
  const { id, agent, reason, message, turn, step, queued, doing, pending } = status;
  return {
    id,
    agent,
    status: statusName(status),
    reason,
    message,
    turn,
    step,
    queued,
    doing,
    pending: pending.map(toPending),
  };
}

/** Returns a request as `agent_status` shows it. */
export function toPending(request: Request): z.infer<typeof statusAnswer>['pending'][number] {
  const { id, kind, call = null, tool = null, fix } = request;
  return { request: id, kind, call, tool, shown: visible(presentRequest(request).headline), fix };
}

export function endedAnswer(id: string, outcome: Outcome): z.infer<typeof resultAnswer> {
  const { status, reason, answer, output, error, steps, usage } = outcome;
  return {
    id,
    done: true,
    status,
    reason,
    answer,
    output,
    message: error ?? null,
    steps,
    cost_usd: usage.costUsd,
  };
}

export function unfinishedAnswer({
  id,
  status,
  reason,
  message,
  step,
  usage,
}: RunStatus): z.infer<typeof resultAnswer> {
  const { costUsd } = usage;
  return {
    id,
    done: false,
    status,
    reason,
    answer: null,
    output: null,
    message,
    steps: step,
    cost_usd: costUsd,
  };
}

/**
 * Creates a tool result with structured content for programs and text for models. The text has one
 * line per field that is not empty, with hidden characters escaped.
 */
export function toolResult(answer: Readonly<Record<string, unknown>>): CallToolResult {
  const lines = Object.entries(answer)
    .filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
    .map(
      ([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    );
  return {
    content: [{ type: 'text', text: printable(lines.join('\n')) }],
    structuredContent: { ...answer },
  };
}

/** The field of a failed result's `_meta` that holds the stable code of the error. */
const CODE_FIELD = 'perdure/code';

/**
 * Returns a handler of a tool whose errors become failed results with a stable code: as a line for
 * models, and in `_meta` for programs. `structuredContent` cannot hold it, because clients check
 * that against the output schema of the tool.
 */
export function withErrorCode<Passed extends readonly unknown[]>(
  handle: (...given: Passed) => CallToolResult | Promise<CallToolResult>,
): (...given: Passed) => Promise<CallToolResult> {
  return async (...given) => {
    try {
      return await handle(...given);
    } catch (error) {
      return failedResult(error instanceof Error ? error.message : String(error), errorCode(error));
    }
  };
}

/** Returns the result of a failed call. */
export function failedResult(message: string, code: ErrorCode): CallToolResult {
  return {
    isError: true,
    content: [
      { type: 'text', text: printable(redactMessage(message)) },
      { type: 'text', text: `code: ${code}` },
    ],
    _meta: { [CODE_FIELD]: code },
  };
}

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

const WORDS = [...new Set<DecisionKind>(Object.values(OFFERED).flat())];

/** The maximum length of the arguments of one request that a model reads, in UTF-16 units. */
const MAX_ARGUMENTS = 20_000;

/**
 * Adds the tools that list requests and decide about them, for the runs that the server serves.
 * They exist only if an option enables them, because they let the MCP client approve.
 */
export function addDecideTools(server: McpServer, access: RunsAccess): void {
  server.registerTool(
    'list_requests',
    {
      description:
        'Returns what a run waits for, with every argument. Show a request to a person before you decide.',
      inputSchema: z.strictObject({ id: runId }),
      outputSchema: z.object({ id: z.string(), requests: z.array(z.looseObject({})) }),
      annotations: { readOnlyHint: true },
    },
    withErrorCode(async ({ id }) => {
      const { pending } = runnableStatus(
        access,
        toRunStatus(await readRun(await clientFor(access, id), id), Date.now()),
      );
      return toolResult({ id, requests: pending.map(shownToModel) });
    }),
  );
  server.registerTool(
    'decide',
    {
      description:
        'Decides about a request of a run on behalf of the person who uses you. The digest binds the ' +
        'decision to exactly the call that list_requests showed.',
      inputSchema: z.strictObject({
        id: runId,
        request: z.string().min(1),
        digest: z
          .string()
          .regex(/^[0-9a-f]{64}$/)
          .describe('from list_requests'),
        as: z.enum(WORDS).describe('one of the decisions that the request offers'),
        arguments: z
          .json()
          .optional()
          .describe('for edit: all new arguments; for raise: by how much'),
        actions: z
          .array(z.string())
          .optional()
          .describe('for some: ids of the plan to execute; omitted: all that need no approval'),
        result: z.json().optional().describe('for answer and happened'),
        note: z.string().max(2_000).optional().describe('the reason, for the agent'),
      }),
      outputSchema: z.object({ id: z.string(), request: z.string(), checking: z.boolean() }),
      annotations: { destructiveHint: true },
    },
    withErrorCode(async ({ id, ...given }) => {
      const client = await clientFor(access, id);
      await access.ensureWorker((await describeRun(client, id)).taskQueue);
      const options = { by: mcpClaim(), ...UPDATE_TIMEOUT };
      const [receipt] = await resolveRequests(client, id, decisionOf(given), options);
      return toolResult({ id, request: given.request, checking: receipt?.checking === true });
    }),
  );
}

interface Given {
  readonly request: string;
  readonly digest: string;
  readonly as: DecisionKind;
  readonly arguments?: Json | undefined;
  readonly actions?: readonly string[] | undefined;
  readonly result?: Json | undefined;
  readonly note?: string | undefined;
}

/** Returns the decision. Throws an `Error` if the arguments are not an object. */
function decisionOf({ arguments: given, actions, result, note, ...rest }: Given): Decision {
  if (given !== undefined && !isObject(given)) {
    throw new CommandError('usage', 'arguments: expected an object, such as {"euros": 20}');
  }
  return {
    ...rest,
    ...(given !== undefined && { arguments: given }),
    ...(actions !== undefined && { actions }),
    ...(result !== undefined && { result }),
    ...(note !== undefined && { note }),
  };
}

/** Returns a request as `list_requests` shows it. */
export function shownToModel(request: Request): Readonly<Record<string, unknown>> {
  const { arguments: given, parsed, question, options, ...rest } = request;
  // The actions of a plan are its arguments, and `shown` has its text.
  const actions = request.kind === 'plan' ? shownActions(given ?? '') : null;
  const asked = actions === null ? { question, options } : {};
  return {
    ...rest,
    ...asked,
    ...(given !== undefined && {
      arguments: cut(request, actions ? JSON.stringify(actions) : given),
    }),
    ...(parsed !== undefined && { parsed: cut(request, parsed) }),
  };
}

function cut({ id }: Request, given: string): string {
  if (given.length <= MAX_ARGUMENTS) return given;
  const note = `… ${given.length - MAX_ARGUMENTS} more characters; read them with: perdure inbox RUN ${id} --full`;
  return given.slice(0, MAX_ARGUMENTS) + note;
}
