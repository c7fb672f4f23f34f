import { z } from 'zod';
import type { RunList } from '../client/list.js';
import type { RequestList } from '../client/requests.js';
import { RIGHTS } from '../config.js';
import { RUN_STATUSES, type RunStatusName } from '../core/state/status.js';
import type { EffectiveLimits } from '../core/state/state.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { type DecisionReceipt, MAX_DECISIONS, type Request } from '../core/transcript/request.js';
import type { RunTranscript, TurnLog } from '../history/run-transcript.js';
import {
  DECISION_INPUT,
  START_INPUT,
  anyJson,
  anyObject,
  attachmentInput,
  limitsInput,
  turnNumber,
} from './input-fields.js';
import type { AgentView, GraphView, RequestView, RunView } from './views.js';
import type { SentMessage } from '../updates/ask.js';

/** One operation of the HTTP API: its place, what it takes, and what it answers. */
export interface Operation<Input extends z.ZodObject = z.ZodObject, Output = unknown> {
  readonly method: 'get' | 'post';
  /** Such as `/v1/runs/{run}`. Fields of the input with these names are in the path. */
  readonly path: string;
  readonly summary: string;
  readonly status: 200 | 201;
  /** All fields: those of the path, and the others in the query (`get`) or in the body (`post`). */
  readonly input: Input;
  readonly output: z.ZodType<Output>;
}

const get = <I extends z.ZodObject, O>(
  path: string,
  summary: string,
  { input, output }: { readonly input: I; readonly output: z.ZodType<O> },
): Operation<I, O> => ({ method: 'get', path, summary, status: 200, input, output });

const post = <I extends z.ZodObject, O>(
  path: string,
  summary: string,
  {
    input,
    output,
    status = 200,
  }: { readonly input: I; readonly output: z.ZodType<O>; readonly status?: 200 | 201 },
): Operation<I, O> => ({ method: 'post', path, summary, status, input, output });

/** Names the type of an answer, of which the schema describes the fields that programs use most. */
function answer<T>(id: string, schema: z.ZodObject): z.ZodType<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- test/http checks real answers
  return schema.meta({ id }) as unknown as z.ZodType<T>;
}

const text = z.string().min(1);
const run = text.describe('the id of the run');
const agent = text.describe('the name of an agent');
const count = z.int().min(0);
/** Numbers in a query are texts. */
const queryCount = z.union(
  [
    z
      .string()
      .regex(/^\d{1,9}$/)
      .transform(Number),
    count,
  ],
  'expected a whole number; give digits only',
);
const queryFlag = z.union(
  [z.enum(['true', 'false']).transform((value) => value === 'true'), z.boolean()],
  'expected true or false; give one of them',
);

const said = {
  message: z.string().exactOptional(),
  messages: z
    .array(z.strictObject({ role: z.enum(['user', 'assistant']), text: z.string() }))
    .exactOptional()
    .describe('several messages as a conversation, in place of `message`'),
  prompt: text.exactOptional().describe('a named prompt of the agent, in place of `message`'),
  input: anyObject.exactOptional().describe('for a graph: fields of its state'),
  settings: anyObject.exactOptional().describe('settings of the model for the turn'),
  attachments: z.array(attachmentInput).min(1).max(20).exactOptional(),
  context: anyJson
    .exactOptional()
    .describe("for the agent's tools, which trust it; needs the right control"),
};

const request = answer<Request>(
  'Request',
  z.looseObject({
    id: z.string(),
    kind: z.string(),
    tool: z.string().exactOptional(),
    arguments: z.string().exactOptional().describe('JSON, exactly as the call will be executed'),
    digest: z.string().describe('a decision must name it'),
    shown: z.string(),
    why: z.string(),
    raisedAt: z.number(),
    expiresAt: z.number().nullable(),
    decisions: z.array(z.string()),
  }),
);

const requestWithView = answer<Request & { readonly view: RequestView }>(
  'ShownRequest',
  z.looseObject({ id: z.string(), digest: z.string(), view: z.looseObject({}) }),
);

const outcome = answer<Outcome>(
  'Outcome',
  z.looseObject({
    status: z.enum(['completed', 'stopped', 'cancelled', 'failed']),
    reason: z.string(),
    answer: z.string().nullable(),
    output: anyJson,
    steps: z.number(),
  }),
);

const status = answer<RunView>(
  'RunStatus',
  z.looseObject({
    id: z.string(),
    agent: z.string(),
    status: z.enum([...Object.keys(RUN_STATUSES), 'done']),
    reason: z.string().nullable(),
    message: z.string().nullable(),
    turn: z.number(),
    step: z.number(),
    pending: z.array(request),
    inFlight: z
      .array(
        z.looseObject({
          on: z.string().describe('the id of a call, or `model`'),
          attempt: z.number(),
          startedAt: z.number().nullable(),
          failures: z.array(z.looseObject({ attempt: z.number(), message: z.string() })),
        }),
      )
      .exactOptional()
      .describe('the calls and the model call that workers have'),
    outcome: outcome.nullable(),
    rights: z.array(z.enum(RIGHTS)),
  }),
);

const agentView = answer<AgentView>(
  'Agent',
  z.object({
    name: z.string(),
    description: z.string(),
    graph: z.boolean(),
    input: anyObject.nullable(),
    args: anyObject.nullable(),
    prompts: z.array(z.string()),
    limits: z
      .object({ turn: z.record(z.string(), z.string()), run: z.record(z.string(), z.string()) })
      .describe('of each turn and of the whole run, as texts'),
    rights: z.array(z.enum(RIGHTS)),
  }),
);

const decision = z.strictObject({
  ...DECISION_INPUT,
  grant: z
    .strictObject({ scope: z.enum(['same_call', 'tool']), where: anyObject.exactOptional() })
    .exactOptional(),
});

const range = {
  from: queryCount.exactOptional(),
  to: queryCount.exactOptional(),
  side: queryFlag.exactOptional().describe('also refused answers'),
};

const done = z.object({ id: z.string() });

const control = (name: string, summary: string) =>
  post(`/v1/runs/{run}/${name}`, summary, { input: z.strictObject({ run }), output: done });

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
const STATUSES = [...Object.keys(RUN_STATUSES), 'ended'] as (RunStatusName | 'ended')[];

/** All operations of the HTTP API. The server, its OpenAPI document, and the client use this table. */
export const OPERATIONS = {
  whoAmI: get('/v1/me', 'Returns the principal of the request.', {
    input: z.strictObject({}),
    output: z.object({
      name: z.string(),
      groups: z.array(z.string()),
      verified: z.boolean().describe('false: the server has no keys'),
    }),
  }),
  listAgents: get('/v1/agents', 'Lists the agents that the principal may use.', {
    input: z.strictObject({}),
    output: z.object({ agents: z.array(agentView) }),
  }),
  startRun: post('/v1/runs', 'Starts a run.', {
    status: 201,
    input: z.strictObject({
      agent,
      ...said,
      id: text.max(1_000).exactOptional().describe('the id of the run; default: a new one'),
      limits: limitsInput.exactOptional().describe('needs the right control'),
      ...START_INPUT,
    }),
    output: z.object({
      id: z.string(),
      repeated: z.boolean().describe('true: the same request had already started this run'),
    }),
  }),
  listRuns: get('/v1/runs', 'Lists runs, newest first.', {
    input: z.strictObject({
      agent: agent.exactOptional(),
      status: z.enum(STATUSES).exactOptional(),
      tag: text.exactOptional(),
      idPrefix: text.exactOptional(),
      since: text.exactOptional(),
      before: text.exactOptional(),
      root: text.exactOptional(),
      limit: queryCount.exactOptional(),
      cursor: text.exactOptional(),
    }),
    output: answer<RunList>(
      'RunList',
      z.object({
        rows: z.array(
          z.looseObject({ id: z.string(), agent: z.string().nullable(), status: z.string() }),
        ),
        cursor: z.string().nullable(),
      }),
    ),
  }),
  getRun: get('/v1/runs/{run}', 'Returns the status of a run, with its open requests.', {
    input: z.strictObject({ run }),
    output: status,
  }),
  getResult: get('/v1/runs/{run}/result', 'Waits for the end of a turn.', {
    input: z.strictObject({
      run,
      turn: queryCount.exactOptional(),
      wait: queryCount.exactOptional().describe('seconds, at most 60; default 30'),
    }),
    output: z.object({
      done: z.boolean().describe('false: it has not ended yet; ask again'),
      outcome: outcome.nullable(),
    }),
  }),
  getTranscript: get('/v1/runs/{run}/transcript', 'Returns the messages of a run.', {
    input: z.strictObject({ run, ...range }),
    output: answer<RunTranscript>(
      'Transcript',
      z.looseObject({ messages: z.array(z.looseObject({})), total: z.number() }),
    ),
  }),
  getTurns: get('/v1/runs/{run}/turns', 'Returns the turns of a run that have ended.', {
    input: z.strictObject({ run }),
    output: answer<TurnLog>('Turns', z.looseObject({ turns: z.array(z.looseObject({})) })),
  }),
  getGraph: get('/v1/runs/{run}/graph', 'Returns the graph of a run, as data and as Mermaid.', {
    input: z.strictObject({ run }),
    output: answer<GraphView>(
      'Graph',
      z.object({
        agent: z.string(),
        mermaid: z.string(),
        nodes: z.array(z.looseObject({ id: z.string(), label: z.string() })),
        edges: z.array(z.looseObject({ from: z.string(), to: z.string() })),
      }),
    ),
  }),
  sendMessage: post(
    '/v1/runs/{run}/messages',
    'Sends a message to an open run. It decides nothing.',
    {
      input: z.strictObject({
        run,
        ...said,
        id: text
          .max(200)
          .exactOptional()
          .describe('repeating a message with the same id has no effect'),
        args: anyObject.exactOptional().describe('the arguments of the prompt'),
        mode: z.enum(['queue', 'steer']).exactOptional(),
      }),
      output: answer<SentMessage>(
        'SentMessage',
        z.looseObject({
          delivered: z.boolean().describe('false: recorded; the next worker delivers it'),
          messageId: z.string(),
          turn: z.number().exactOptional(),
        }),
      ),
    },
  ),
  forkRun: post('/v1/runs/{run}/forks', 'Starts a run that begins with the messages of this one.', {
    status: 201,
    input: z.strictObject({
      run,
      at: z
        .union(
          [z.int().min(1), z.strictObject({ node: text, visit: z.int().min(1).exactOptional() })],
          'expected the number of a message, from 1, or {"node": NAME, "visit": NUMBER}',
        )
        .exactOptional()
        .describe('the first message that is left out, or a visit of a node; default: copy all'),
      id: text.max(1_000).exactOptional().describe('the id of the new run; default: a new one'),
      agent: agent.exactOptional().describe('default: the agent of the run, with its context'),
      message: said.message,
      input: said.input,
      attachments: said.attachments,
      open: z.boolean().exactOptional(),
    }),
    output: z.object({ id: z.string(), repeated: z.boolean() }),
  }),
  undoCall: post('/v1/runs/{run}/undo', 'Begins to undo a call.', {
    input: z.strictObject({ run, call: text.exactOptional().describe('default: the only one') }),
    output: z.object({ id: z.string(), call: z.string() }),
  }),
  listRequests: get('/v1/requests', 'Lists open requests, oldest first.', {
    input: z.strictObject({
      agent: agent.exactOptional(),
      run: run.exactOptional(),
      root: run.exactOptional(),
    }),
    output: answer<RequestList>(
      'RequestList',
      z.looseObject({ requests: z.array(z.looseObject({ run: z.string(), id: z.string() })) }),
    ),
  }),
  getRequest: get('/v1/runs/{run}/requests/{request}', 'Returns a request with all arguments.', {
    input: z.strictObject({ run, request: text }),
    output: requestWithView,
  }),
  decide: post(
    '/v1/runs/{run}/decisions',
    'Decides about requests: all decisions count, or none.',
    {
      input: z.strictObject({
        run,
        decisions: z
          .array(decision)
          .min(1)
          .max(MAX_DECISIONS)
          .describe('a list with one decision for each request'),
      }),
      output: z.object({
        receipts: z.array(
          answer<DecisionReceipt>(
            'Receipt',
            z.looseObject({
              request: z.string(),
              as: z.string(),
              checking: z
                .literal(true)
                .exactOptional()
                .describe('a worker checks it before it counts'),
            }),
          ),
        ),
      }),
    },
  ),
  cancelRun: post('/v1/runs/{run}/cancel', 'Cancels a run, or one turn of an open run.', {
    input: z.strictObject({ run, turn: turnNumber.exactOptional() }),
    output: done,
  }),
  pauseRun: control('pause', 'Pauses a run after its calls in flight.'),
  resumeRun: control('resume', 'Continues a paused run, or retries a blocked one.'),
  closeRun: control('close', 'Ends an open run after the messages it already has.'),
  setLimits: post('/v1/runs/{run}/limits', 'Replaces the given limits.', {
    input: z.strictObject({
      run,
      limits: limitsInput.describe('the new limits, such as {"steps": 100}'),
    }),
    output: answer<EffectiveLimits>(
      'Limits',
      z.looseObject({ turn: z.looseObject({}), run: z.looseObject({}) }),
    ),
  }),
} as const;

/** The table of all operations, as a type. */
export type Operations = typeof OPERATIONS;
/** The name of an operation, and of its method on the client. */
export type OperationName = keyof Operations;
/** What an operation takes, as its caller writes it. */
export type OperationInput<Name extends OperationName> = z.input<Operations[Name]['input']>;
/** What an operation takes, as the server reads it. */
export type ReadInput<Name extends OperationName> = z.output<Operations[Name]['input']>;
/** What an operation answers. */
export type OperationOutput<Name extends OperationName> = z.output<Operations[Name]['output']>;

/** Returns the names of the fields in a path. */
export function pathFields(path: string): readonly string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
}
