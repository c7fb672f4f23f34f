import type { CallToolResult } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { ReadStatus } from '../client/below.js';
import type { Runnable } from '../client/runnable-texts.js';
import { commandLine } from '../core/requests/commands.js';
import { RUN_STATUSES, type RunStatus, statusName } from '../core/state/status.js';
import { printable, show } from '../core/text/text.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { DECISION_KINDS, type Request } from '../core/transcript/request.js';
import { redactMessage } from '../secrets/redact.js';
import { DECISION_INPUT, MAX_WAIT_SECONDS, turnNumber } from './input-fields.js';
import type { ServedAgent } from './access.js';
import { pendingAnswer, toPending } from './views.js';

// The tools of perdure's MCP server, which the command serves over stdin, and the HTTP server at /mcp.

/** The options of a server whose lists do not change while it runs, so that no client waits for that. */
export const UNCHANGING = { capabilities: { tools: { listChanged: false } } } as const;

/** The default of `wait_seconds`. */
export const WAIT_SECONDS = 20;

/** The input field that names a run. */
const runId = z.string().min(1).describe('the run, as agent_start returned it');

/** The input field that makes a request idempotent. */
const operationId = z
  .string()
  .min(1)
  .max(200)
  .describe('an id that you choose, new for each new operation; repeating it has no second effect');

/** The output of `agent_status`. */
const statusAnswer = z.object({
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
  pending: pendingAnswer,
});

/** The output of `agent_result`. */
const resultAnswer = z.object({
  id: z.string(),
  done: z.boolean().describe('false: the turn is not over; act on `message`, or ask again'),
  status: z
    .string()
    .describe(
      'as in agent_status; if the run continues, that of its newest turn once done is true',
    ),
  reason: z.string().nullable(),
  answer: z.string().nullable(),
  output: z.unknown().describe('the typed value, for agents with an output'),
  message: z.string().nullable().describe('what went wrong, or what the run waits for'),
  pending: pendingAnswer,
  steps: z.number(),
  cost_usd: z.number().nullable(),
});

export function toStatusAnswer(
  status: RunStatus,
  runnable: Runnable,
): z.infer<typeof statusAnswer> {
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
    pending: pending.map((request) => toPending(id, request, runnable)),
  };
}

/**
 * Returns the status of a run whose message also says what lets it go on, if nothing is wrong with it: what
 * a run that it called waits for; a run that is paused is resumed, and one without a message gets one.
 */
export function withNextAct<Status extends ReadStatus>(status: Status, runnable: Runnable): Status {
  const { id, message, outcome, below = [], blockedBelow = [] } = status;
  if (message !== null) return status;
  if (status.status === 'paused') {
    const command = runnable(commandLine('perdure', ['resume', id]));
    return { ...status, message: `the run is paused; a person resumes it with: ${command}` };
  }
  const request = below.find(({ checking }) => checking !== true);
  if (request !== undefined) {
    const asked = `request ${request.id} of run ${request.run}, which this run called, waits for a person: ${request.shown}`;
    return { ...status, message: `${asked}; ${request.fix}` };
  }
  const [blocked] = blockedBelow;
  if (blocked !== undefined) {
    const why = `run ${blocked.run}, which this run called, is blocked (${blocked.reason})`;
    return { ...status, message: `${why}: ${blocked.message}` };
  }
  if (status.status !== 'waiting_message' || outcome !== null) return status;
  return { ...status, message: 'the run waits for its first message; send it with agent_send' };
}

/**
 * Returns the status of a run for a client that has the tools for decisions: each `fix` names them
 * instead of a command, which the client may have no terminal for.
 */
export function withDecideTools<Status extends RunStatus>(status: Status): Status {
  const { id: run, message, pending } = status;
  const fixed = fixedWith(pending, `show it to a person with list_requests, id ${show(run)}`);
  const [first] = pending;
  const [told] = fixed;
  return {
    ...status,
    message: first && told && message ? message.replace(first.fix, () => told.fix) : message,
    pending: fixed,
  };
}

/** Returns the requests that `list_requests` shows: the client has them, so the next step is to decide. */
export function listedRequests(pending: readonly Request[]): readonly Request[] {
  return fixedWith(pending, 'show it to a person as it is here');
}

function fixedWith(pending: readonly Request[], first: string): readonly Request[] {
  return pending.map((request) => ({
    ...request,
    fix: `${first}; then call decide with request "${request.id}", its digest, and as: ${request.decisions.join(', ')}${request.form === undefined ? '' : '; the `result` of an answer is an object with the fields of `form`'}`,
  }));
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
    pending: [],
    steps,
    cost_usd: usage.costUsd,
  };
}

export function unfinishedAnswer(
  { id, status, reason, message, pending, step, usage }: RunStatus,
  runnable: Runnable,
): z.infer<typeof resultAnswer> {
  const { costUsd } = usage;
  return {
    id,
    done: false,
    status,
    reason,
    answer: null,
    output: null,
    message,
    pending: pending.map((request) => toPending(id, request, runnable)),
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

/** The most names of tools or nodes that `agent_list` shows. */
const MAX_LISTED_NAMES = 20;

/** Returns an agent as `agent_list` shows it. Without a description, its tools or nodes tell what it is for. */
export function toListedAgent({ name, description, tools, graph, mcp = [] }: ListedAgent) {
  if (description !== '') return { name, description };
  const about = graph
    ? namesOf(
        'a graph with the node',
        graph.definition.nodes.map((node) => node.name),
      )
    : namesOf('an agent with the tool', tools?.tools.map((tool) => tool.name) ?? []);
  const servers = namesOf(
    'tools of the MCP server',
    mcp.map((server) => server.name),
  );
  return { name, description: ['no description', about, servers].filter(Boolean).join('; ') };
}

/** An agent of the configuration. The tools of its MCP servers are listed when a run starts. */
type ListedAgent = Omit<ServedAgent, 'limits'> & {
  readonly mcp?: readonly { readonly name: string }[];
};

function namesOf(kind: string, names: readonly string[]): string {
  if (names.length === 0) return '';
  const more = names.length > MAX_LISTED_NAMES ? ', …' : '';
  return `${kind}${names.length > 1 ? 's' : ''} ${names.slice(0, MAX_LISTED_NAMES).join(', ')}${more}`;
}

/** The declaration of each tool: its description, input, and output. */
export const RUN_TOOLS = {
  agent_list: {
    description: 'Lists the agents that can be started, with what each is for.',
    // Some clients send an argument to each tool.
    inputSchema: z.looseObject({}),
    outputSchema: z.object({
      agents: z.array(
        z.object({
          name: z.string(),
          description: z.string().describe('what it is for; without one, what it has'),
        }),
      ),
    }),
    annotations: { readOnlyHint: true },
  },
  agent_start: {
    description:
      'Starts an agent on a task and returns at once. The run survives crashes and restarts; ' +
      'read its result with agent_result.',
    inputSchema: z.strictObject({
      agent: z.string().min(1).describe('the name of an agent, as agent_list returned it'),
      message: z
        .string()
        .min(1)
        .exactOptional()
        .describe('the task; may be omitted for a graph with input, and with open: true'),
      input: z
        .record(z.string(), z.json())
        .exactOptional()
        .describe('only for a graph: fields of its state'),
      args: z
        .record(z.string(), z.json())
        .exactOptional()
        .describe('only for an agent whose instructions are a template: its arguments'),
      operation_id: operationId,
      context: z.json().exactOptional().describe("for the agent's tools; the model never sees it"),
      open: z
        .boolean()
        .exactOptional()
        .describe('keep the run open for more messages by agent_send'),
    }),
    outputSchema: z.object({
      id: z.string(),
      repeated: z.boolean().describe('true: this operation had already started the run'),
    }),
  },
  agent_status: {
    description:
      'Returns what a run is doing, what it waits for, or how it ended. Needs no worker.',
    inputSchema: z.strictObject({ id: runId }),
    outputSchema: statusAnswer,
    annotations: { readOnlyHint: true },
  },
  agent_result: {
    description:
      "Waits for a run's answer (of an open run: of its newest turn) and returns it. " +
      'It also returns, with done: false, as soon as the run waits for a person or a message: ' +
      '`message` says what to do. If the run is still working, ask again.',
    inputSchema: z.strictObject({
      id: runId,
      // It announces the longest wait, and accepts a longer one.
      wait_seconds: z
        .number()
        .min(0)
        .meta({ maximum: MAX_WAIT_SECONDS })
        .optional()
        .describe(
          `default ${WAIT_SECONDS}, at most ${MAX_WAIT_SECONDS}; a longer wait is cut to it`,
        ),
    }),
    outputSchema: resultAnswer,
    annotations: { readOnlyHint: true },
  },
  agent_send: {
    description:
      'Sends the next message to a run that was started with open: true; read the answer with agent_result.',
    inputSchema: z.strictObject({
      id: runId,
      message: z.string().min(1).describe('the next message'),
      operation_id: operationId,
      steer: z.boolean().optional().describe('join the current turn, before its next step'),
    }),
    outputSchema: z.object({
      id: z.string(),
      delivered: z
        .boolean()
        .describe('false: the message is recorded, and a later worker delivers it'),
      turn: z.number().nullable(),
    }),
  },
  agent_cancel: {
    description:
      'Cancels a run or, with `turn`, only the turn with that number, after which an open run takes ' +
      'more messages. What it has done is kept. agent_status returns the number of the turn.',
    inputSchema: z.strictObject({
      id: runId,
      turn: turnNumber.optional(),
    }),
    outputSchema: z.object({ id: z.string(), cancelled: z.enum(['run', 'turn']) }),
    annotations: { destructiveHint: true, idempotentHint: true },
  },
  agent_close: {
    description:
      'Closes a run that was started with open: true: it takes no more messages, and ends once it has ' +
      'answered the ones it already has. Read the last answer with agent_result.',
    inputSchema: z.strictObject({ id: runId }),
    outputSchema: z.object({ id: z.string(), closed: z.literal(true) }),
    annotations: { idempotentHint: true },
  },
  list_requests: {
    description:
      'Returns what a run waits for, with every argument. Show a request to a person before you decide.',
    inputSchema: z.strictObject({ id: runId }),
    outputSchema: z.object({ id: z.string(), requests: z.array(z.looseObject({})) }),
    annotations: { readOnlyHint: true },
  },
  decide: {
    description:
      'Decides about a request of a run on behalf of the person who uses you. The digest binds the ' +
      'decision to exactly the call that list_requests showed.',
    inputSchema: z.strictObject({
      id: runId,
      ...DECISION_INPUT,
      // The handler refuses any other name with those that the request offers.
      as: z
        .string()
        .meta({ enum: [...DECISION_KINDS], description: DECISION_INPUT.as.description }),
      arguments: z
        .record(z.string(), z.json())
        .exactOptional()
        .describe(
          'for edit: all new arguments; for raise: by how much, on top of what is used or allowed, whichever is more',
        ),
      result: z.json().exactOptional().describe('for answer and happened'),
    }),
    outputSchema: z.object({ id: z.string(), request: z.string(), checking: z.boolean() }),
    annotations: { destructiveHint: true },
  },
} as const;

/** The field of a failed result's `_meta` that holds the stable code of the error. */
const CODE_FIELD = 'perdure/code';

/**
 * Returns a function that makes failed results of what the handler of a tool throws, with a stable
 * code: as a line for models, and in `_meta` for programs. `structuredContent` cannot hold it, because
 * clients check that against the output schema of the tool.
 */
export function failuresAs(
  describe: (error: unknown) => { readonly message: string; readonly code: string },
): <Passed extends readonly unknown[]>(
  handle: (...given: Passed) => CallToolResult | Promise<CallToolResult>,
) => (...given: Passed) => Promise<CallToolResult> {
  return (handle) =>
    async (...given) => {
      try {
        return await handle(...given);
      } catch (error) {
        const { message, code } = describe(error);
        return failedResult(message, code);
      }
    };
}

/** Returns the result of a failed call. */
export function failedResult(message: string, code: string): CallToolResult {
  return {
    isError: true,
    content: [
      { type: 'text', text: printable(redactMessage(message)) },
      { type: 'text', text: `code: ${code}` },
    ],
    _meta: { [CODE_FIELD]: code },
  };
}
