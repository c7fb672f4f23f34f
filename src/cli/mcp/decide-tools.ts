import { CommandError } from '../exit-codes.js';
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { toRunStatus } from '../../client/status.js';
import { isObject, type Json } from '../../core/json.js';
import type { Decision } from '../../core/requests/decision.js';
import { shownActions } from '../../core/plan/confirm-plan.js';
import { OFFERED, type DecisionKind, type Request } from '../../core/requests/request.js';
import { describeRun, readRun } from '../../history/read-run.js';
import { resolveRequests } from '../../updates/decide.js';
import { clientFor, mcpClaim, runId, UPDATE_TIMEOUT, type RunsAccess } from './access.js';
import { toolResult, withErrorCode } from './answers.js';

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
      const { pending } = toRunStatus(await readRun(await clientFor(access, id), id), Date.now());
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
    ...(given !== undefined && { arguments: cut(actions ? JSON.stringify(actions) : given) }),
    ...(parsed !== undefined && { parsed: cut(parsed) }),
  };
}

function cut(given: string): string {
  if (given.length <= MAX_ARGUMENTS) return given;
  const note = `… ${given.length - MAX_ARGUMENTS} more characters; read them with: perdure inbox --full`;
  return given.slice(0, MAX_ARGUMENTS) + note;
}
