import type { PerdureClient } from '../client/client-types.js';
import type { CallToolResult, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Limits } from '../core/definition/definition.js';
import { InputError, RefusedError } from '../core/errors.js';
import { checkLimits, toLimits } from '../core/input/limits.js';
import type { RunStatus } from '../core/state/status.js';
import { visible } from '../core/state/summaries.js';
import { WHOLE_DIGEST } from '../core/requests/commands.js';
import { type Json, isObject, isTooDeep } from '../core/text/json.js';
import { type Duration, show } from '../core/text/text.js';
import {
  DECISION_KINDS,
  type DecisionKind,
  MAX_NOTE_CHARACTERS,
  type Request,
} from '../core/transcript/request.js';
import { describeIssues } from '../validation/check-options.js';
import { likelyMeant } from '../validation/near-names.js';
import { requestIssue } from '../validation/request-issues.js';

const text = z.string().min(1).max(1_000);

const MAX_CLIENT_ID = 1_000;

/**
 * An id of a conversation, or of its client's request. A run gets a digest of it, so it may be longer
 * than the id of a run.
 */
export const clientId = z
  .string()
  .min(1)
  .max(MAX_CLIENT_ID, {
    error: ({ input }) =>
      `expected at most ${MAX_CLIENT_ID} characters, got ${typeof input === 'string' ? input.length : 'more'}; use a shorter id`,
  });

/** An image or a file of a message, as a request has it. */
export const attachmentInput = z.union(
  [
    z.strictObject({
      data: z
        .base64('expected base64')
        .min(4)
        .describe('the bytes as base64; the body of a request is limited'),
      mediaType: text.exactOptional().describe('needed only if it cannot be detected'),
      name: text.exactOptional().describe('the file name that the model sees'),
    }),
    z.strictObject({
      url: z
        .url({ protocol: /^https?$/, error: 'expected an address with http or https' })
        .max(8_000)
        .describe('an image, fetched by the provider'),
    }),
  ],
  'expected {"data": BASE64, "mediaType", "name"} or {"url": "https://…"}',
);

export type AttachmentInput = z.output<typeof attachmentInput>;

/** The longest wait of one request for a result, over HTTP and MCP. A longer one is cut to it. */
export const MAX_WAIT_SECONDS = 60;

const aTurn = 'expected the number of a turn, such as 2; omit it to cancel the whole run';

/** The turn that a request cancels. */
export const turnNumber = z
  .int(aTurn)
  .min(1, aTurn)
  .describe('the number of the turn under way, such as 2; omitted: the whole run is canceled');

/** A body is JSON, so any value in it is. */
export const anyJson = z.custom<Json>(() => true);
export const anyObject = z.record(z.string(), anyJson);

const limitSet = z.strictObject({
  steps: z.number().nullable().exactOptional(),
  toolCalls: z.number().nullable().exactOptional(),
  tokens: z.number().nullable().exactOptional(),
  costUsd: z.number().nullable().exactOptional(),
  wallMs: z.number().nullable().exactOptional(),
  depth: z.number().nullable().exactOptional(),
});

/** The limits of a turn, and of the whole run. */
export const limitsInput = limitSet.extend({ run: limitSet.exactOptional() });

/** Returns limits. Throws an `InputError` that names the wrong one: a run would refuse it as it refuses decisions. */
export function checkedLimits(limits: z.output<typeof limitsInput>): Limits {
  const problem = checkLimits(limits, 'limits');
  if (problem !== null) throw new InputError(problem);
  return toLimits(limits);
}

/** The settings with which a run starts. */
export const START_INPUT = {
  args: anyObject
    .exactOptional()
    .describe('the arguments of the instructions, if they are a template'),
  promptArgs: anyObject.exactOptional(),
  open: z
    .boolean()
    .exactOptional()
    .describe('whether the run waits for more messages after a turn'),
  tags: z.array(text).max(20).exactOptional(),
  tenant: text.exactOptional().describe('who shares the workers fairly with other tenants'),
  unattended: z.literal('deny').exactOptional(),
  clientTools: z
    .array(
      z.strictObject({
        name: text,
        description: z.string().exactOptional(),
        parameters: anyObject.exactOptional().describe('JSON schema, of type object'),
      }),
    )
    .exactOptional()
    .describe('tools that the caller executes: each call is a request `client_tool`'),
};

/** The tools of a caller, as a request has them. */
export type ClientTools = NonNullable<z.output<(typeof START_INPUT)['clientTools']>>;

/** The fields of a decision in each interface that takes perdure's own form. */
export const DECISION_INPUT = {
  request: z.string().min(1),
  digest: z
    .string()
    .regex(/^[0-9a-f]{64}$/, WHOLE_DIGEST)
    .describe('the whole digest of the request, as it was shown'),
  as: z.enum(DECISION_KINDS).describe('one of the decisions that the request offers'),
  arguments: anyObject
    .exactOptional()
    .describe(
      'for edit: all new arguments; for raise: by how much, on top of what is used or allowed, whichever is more',
    ),
  actions: z
    .array(z.string())
    .exactOptional()
    .describe(
      'for some: ids of the plan to execute, with all that they need; omitted: all that need no approval',
    ),
  result: anyJson.exactOptional().describe('for answer and happened'),
  note: z.string().max(MAX_NOTE_CHARACTERS).exactOptional().describe('the reason, for the model'),
};

/**
 * Lets an MCP server refuse arguments that do not fit a tool's schema as it refuses others: it names the
 * field, the value, and what was expected. The SDK would give the issues as JSON, without a code.
 */
export function refuseInOwnWords(
  server: McpServer,
  refused: (message: string) => CallToolResult,
): void {
  Object.defineProperties(server, {
    createToolError: { value: refused },
    validateToolInput: {
      value: async ({ inputSchema: schema }: { readonly inputSchema?: unknown }, given: unknown) =>
        schema instanceof z.ZodObject ? parsedInput(schema, given ?? {}) : undefined,
    },
  });
}

/** Returns what is wrong with the arguments of a tool call, before a tool reads them; null for any other message. */
export function toolCallFault(message: unknown): string | null {
  const { method, params } = isObject(message) ? message : {};
  if (method !== 'tools/call' || !isObject(params)) return null;
  const { arguments: given } = params;
  if (given === undefined || (isObject(given) && !Array.isArray(given))) return null;
  return `arguments: expected an object with the fields of the tool, got ${show(given)}`;
}

const INVALID_PARAMS = -32_602;
/** The tools that a server offers only if it is started so. */
const DECIDE_TOOLS = ['list_requests', 'decide'];

/**
 * Lets an MCP server whose tools are registered refuse the name of another one with the nearest name; the
 * SDK would only say that it was not found. `toDecide`: how the tools for decisions are offered.
 */
export function refuseUnknownTools(server: McpServer, toDecide: string): void {
  const registered: unknown = Reflect.get(server, '_registeredTools');
  if (!isObject(registered)) return;
  const tools = new Proxy(registered, {
    get(target, name): unknown {
      if (typeof name !== 'string' || Object.hasOwn(target, name)) return Reflect.get(target, name);
      // As the SDK's own error, whose code becomes that of the answer.
      throw Object.assign(new Error(unknownTool(name, target, toDecide)), { code: INVALID_PARAMS });
    },
  });
  const schemaOf: unknown = Reflect.get(server, 'toolInputSchemaJson');
  Object.defineProperties(server, {
    _registeredTools: { value: tools },
    // Over HTTP, the SDK looks for a tool already before it handles the call, and would fail there.
    toolInputSchemaJson: {
      value: (name: string): unknown =>
        Object.hasOwn(registered, name) && typeof schemaOf === 'function'
          ? Reflect.apply(schemaOf, server, [name])
          : undefined,
    },
    // No tool has one.
    resolveScopeChallenge: { value: () => undefined },
  });
}

function unknownTool(name: string, tools: object, toDecide: string): string {
  const named = `name: expected a tool of this server, got ${show(name)}`;
  if (DECIDE_TOOLS.includes(name)) return `${named}; it is offered only with ${toDecide}`;
  const known = Object.keys(tools);
  const meant = likelyMeant(name, known);
  const hint = meant === undefined ? `it has ${known.join(', ')}` : `did you mean ${meant}?`;
  return `${named}; ${hint}`;
}

function parsedInput(schema: z.ZodObject, given: unknown): unknown {
  // zod recurses, and would fail with an error of its own.
  const deep = isObject(given) && Object.entries(given).find(([, value]) => isTooDeep(value));
  if (deep) {
    throw new InputError(`${deep[0]}: expected at most 200 levels, got more; flatten the value`);
  }
  const { data, error } = schema.safeParse(given, { error: requestIssue });
  if (error === undefined) return data;
  const known = Object.keys(schema.shape);
  const lines = describeIssues(error.issues, given, {
    root: 'the arguments',
    keys: {
      known,
      unrecognized: (keys, _, meant) =>
        known.length === 0
          ? `${keys}: expected no fields; remove it`
          : `${keys}: expected one of the fields ${known.join(', ')}; ${meant === undefined ? 'omit it' : `did you mean ${meant}?`}`,
    },
  });
  const [first = '', ...others] = lines.map((line) => withMeaning(line.slice(2), schema));
  throw new InputError([first, ...others].join('\n'));
}

/** Adds to the line about a missing field what the field is, which says what to give. */
export function withMeaning(line: string, { shape }: z.ZodObject): string {
  const [, field = ''] = /^(\w+): missing, /.exec(line) ?? [];
  const described: unknown = Object.hasOwn(shape, field) ? shape[field] : undefined;
  const meaning = described instanceof z.ZodType ? described.description : undefined;
  return meaning === undefined ? line : `${line}; give ${meaning}`;
}

/** Returns the message of an error about a start or a message, in the words of the tools. */
export function inToolTerms(message: string): string {
  return inCancelTerms(message)
    .replaceAll('mode "steer"', 'steer: true')
    .replaceAll('"open": true', 'open: true')
    .replace('GET /v1/agents lists them', 'agent_list lists them')
    .replace(/GET \/v1\/runs lists .*$/, 'give an id that agent_start returned')
    .replace(/^Idempotency-Key: expected a new key/, 'operation_id: expected a new id')
    .replace(/^id: /, 'operation_id: ')
    .replace(/^run: /, 'id: ');
}

/** Returns why a turn was not canceled, with what the tools can do instead: none resumes a run. */
export function inCancelTerms(message: string): string {
  const cancel = 'cancel the run with agent_cancel without `turn`';
  return message
    .replace(
      'send it one, close the run, or cancel it as a whole',
      `send it one with agent_send, close it with agent_close, or ${cancel}`,
    )
    .replace('resume it, or cancel the run as a whole', `a person can resume it; or ${cancel}`)
    .replace('cancel the run as a whole', cancel);
}

/**
 * Returns a name as the decision that it is. Throws an `InputError` for any other name, with the decisions that
 * the request offers, or with all of them if it is not open. `pending`: reads the open requests.
 */
export async function decisionNamed(
  { request: id, as: name }: { readonly request: string; readonly as: string },
  pending: () => Promise<readonly Pick<Request, 'id' | 'decisions'>[]>,
): Promise<DecisionKind> {
  const kind = DECISION_KINDS.find((one) => one === name);
  if (kind !== undefined) return kind;
  const request = (await pending()).find((one) => one.id === id);
  const known = request?.decisions ?? DECISION_KINDS;
  const meant = likelyMeant(name, known);
  const about = request === undefined ? '' : ` for ${visible(id)}`;
  throw new InputError(
    `as: expected one of ${known.join(', ')}${about}, got ${show(name)}${meant === undefined ? '' : `; did you mean ${meant}?`}`,
  );
}

/** The answer to a cancel of a run that has ended, in whatever way. `outcome`: where its outcome is. */
export function nothingToCancel(id: string, outcome = 'agent_result'): RefusedError {
  return new RefusedError(
    `run ${visible(id)} has ended, so there is nothing to cancel; ${outcome} returns its outcome`,
    { reason: 'run_ended' },
  );
}

/** Cancels a run. Rejects with a `RefusedError` if it has ended; one that cannot be read may be open. */
export async function cancelOpen(
  api: Pick<PerdureClient, 'cancel' | 'status'>,
  run: string,
): Promise<void> {
  const found = await api.status(run).catch(() => null);
  // The run may have ended by a cancel whose answer was lost, and which is repeated.
  if (found?.status === 'done' && found.outcome?.status !== 'cancelled') {
    throw nothingToCancel(run, `GET /v1/runs/${encodeURIComponent(run)}/result`);
  }
  await api.cancel(run);
}

/**
 * Throws an `InputError` that names the calls of a run that can be undone if there are several: of two requests
 * of which the first had no answer, each would undo another one. The run itself chooses a single one, or refuses.
 */
export function requireOneUndoable(
  { undoable = [] }: Pick<RunStatus, 'undoable'>,
  now: number,
): void {
  const open = undoable.filter(({ state, until }) => state === undefined && until > now);
  if (open.length <= 1) return;
  const calls = open.map(({ call, shown }) => `${show(call)} (${visible(shown)})`).join(', ');
  throw new InputError(`call: expected one of ${calls}, got none; give the id of one`);
}

/** Undoes a call, by default the only one that can be undone; see `requireOneUndoable`. Returns its id. */
export async function undoOnly(
  api: Pick<PerdureClient, 'status' | 'undo'>,
  {
    run,
    call,
    within,
  }: { readonly run: string; readonly call?: string | undefined; readonly within: Duration },
): Promise<string> {
  if (call === undefined) requireOneUndoable(await api.status(run), Date.now());
  return await api.undo(run, { ...(call !== undefined && { call }), within });
}
