import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import {
  DECISION_FIELDS,
  type DecisionField,
  MAX_DECISIONS,
  type Request,
  type RequestKind,
} from '../core/transcript/request.js';
import { clientId } from './input-fields.js';
import { OPERATIONS, type ReadInput } from './operations.js';
import { firstIssue } from '../validation/check-options.js';
import { requestIssue } from '../validation/request-issues.js';

/** What a client of AG-UI sends, and what it is asked. */

const message = z.looseObject({
  id: z.string().min(1),
  role: z.string(),
  content: z.unknown().optional(),
  toolCallId: z.string().optional(),
  toolCalls: z
    .array(
      z.looseObject({
        id: z.string(),
        function: z.looseObject({ name: z.string(), arguments: z.string() }),
      }),
    )
    .optional(),
});
const answer = z.looseObject({
  interruptId: z.string(),
  status: z.enum(['resolved', 'cancelled']),
  payload: z.unknown().optional(),
});
const none = (instead: string) =>
  z.array(z.unknown()).max(0, `expected an empty list; ${instead}`).optional();
const runInput = z.looseObject({
  threadId: clientId,
  runId: clientId,
  messages: z.array(message),
  tools: none('the tools are those of the agent, where one without `execute` is for the client'),
  context: none('what an agent has to know is in its instructions, or in a message'),
  resume: z.array(answer).max(MAX_DECISIONS).optional(),
});

/** A message in the form of AG-UI. Those of other roles are the client's own affair. */
export interface ThreadMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant' | 'tool';
  readonly content?: string;
  readonly toolCallId?: string;
  readonly toolCalls?: readonly ThreadCall[];
}

export interface ThreadCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** What a request to run an agent means. */
export interface ThreadInput {
  readonly threadId: string;
  readonly runId: string;
  /** What the client shows. It decides what has to be sent, and never what has happened. */
  readonly shown: readonly ThreadMessage[];
  /** The newest messages of the user, without an answer between them. */
  readonly said: readonly { readonly id: string; readonly text: string }[];
  /** Why they cannot be sent; null if they can. A client that only connects may still show such messages. */
  readonly fault: string | null;
  /** Whether they are the end of what the client shows. */
  readonly isLast: boolean;
  /** Null if the request answers no interrupts. */
  readonly decisions: ReadInput<'decide'>['decisions'] | null;
}

/** How many messages a request may add, and the length of their ids, which come back as they are. */
const [MAX_SAID, MAX_ID_CHARACTERS] = [20, 160];

/** Reads the body of a request. Throws an `InputError` that names the first fault. */
export function readRunInput(body: unknown): ThreadInput {
  const input = read(runInput, body, { fix: RUN_FORM });
  const shown = input.messages.flatMap((one, at) => toMessage(one, at) ?? []);
  const last = shown.findLastIndex(({ role }) => role === 'user');
  const first = shown.findLastIndex(({ role }, at) => at < last && role !== 'user') + 1;
  const users = last === -1 ? [] : shown.slice(first, last + 1);
  const { resume } = input;
  if (users.length > MAX_SAID) {
    throw new InputError(
      `messages: expected at most ${MAX_SAID} new messages of the user, got ${users.length}; send fewer at once`,
    );
  }
  const long = users.find(({ id }) => id.length > MAX_ID_CHARACTERS);
  if (long !== undefined) {
    throw new InputError(
      `messages: expected ids of at most ${MAX_ID_CHARACTERS} characters, got ${long.id.length}; use shorter ids`,
    );
  }
  return {
    threadId: input.threadId,
    runId: input.runId,
    shown,
    said: users.map(({ id, content = '' }) => ({ id, text: content })),
    isLast: last !== -1 && last === shown.length - 1,
    fault: emptyText(input.messages, users),
    decisions: resume === undefined ? null : resume.flatMap((one, at) => toDecision(one, at) ?? []),
  };
}

/** Returns which of the messages of the user has no text, or null. */
function emptyText(
  messages: readonly z.output<typeof message>[],
  users: readonly ThreadMessage[],
): string | null {
  const empty = users.find(({ content = '' }) => content.trim() === '');
  if (empty === undefined) return null;
  const at = messages.findIndex(({ id, role }) => role === 'user' && id === empty.id);
  const content = messages[at]?.content;
  const got = content === undefined ? 'none' : show(content);
  return `messages[${at}].content: expected text, got ${got}`;
}

/** Reads the thread that a request names. Throws an `InputError`. */
export function readThread(body: unknown): string {
  return read(z.looseObject({ threadId: clientId }), body, { fix: '{ "threadId": "THREAD" }' })
    .threadId;
}

/** The form of a request to run an agent. */
export const RUN_FORM =
  '{ "threadId": "THREAD", "runId": "RUN", "messages": [{ "id": "m1", "role": "user", "content": "…" }] }';

/** `at`: the place of the value in the body; `fix`: the form of the whole body. */
function read<T>(
  schema: z.ZodType<T>,
  body: unknown,
  { at = '', fix = '' }: { readonly at?: string; readonly fix?: string } = {},
): T {
  const found = schema.safeParse(body, { error: requestIssue });
  if (found.success) return found.data;
  throw new InputError(firstIssue(found.error.issues, body, at) + (fix && `; send ${fix}`));
}

function toMessage(given: z.output<typeof message>, at: number): ThreadMessage | null {
  const { id, role, toolCallId, toolCalls = [] } = given;
  if (role !== 'user' && role !== 'assistant' && role !== 'tool') return null;
  const content = textOf(given, at);
  const calls = toolCalls.map(({ id: call, function: { name, arguments: json } }) => ({
    id: call,
    type: 'function' as const,
    function: { name, arguments: json },
  }));
  return {
    id,
    role,
    ...((content !== '' || role === 'tool') && { content }),
    ...(toolCallId !== undefined && { toolCallId }),
    ...(calls.length > 0 && { toolCalls: calls }),
  };
}

function textOf({ role, content }: z.output<typeof message>, at: number): string {
  if (typeof content === 'string') return content;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [];
  const texts = parts.map((part, index) => {
    const text = isObject(part) && part['type'] === 'text' ? part['text'] : undefined;
    if (typeof text === 'string') return text;
    if (role !== 'user') return '';
    throw new InputError(
      `messages[${at}].content[${index}]: expected text, got ${show(part)}; this server takes no other parts`,
    );
  });
  return texts.join('\n');
}

/** The answer to an approval as AG-UI recommends it. */
const approval = z.strictObject({
  approved: z.boolean(),
  editedArgs: z.record(z.string(), z.unknown()).optional(),
  reason: z.string().optional(),
});

/** Returns the decision of an answer; null if the client leaves the request open. */
function toDecision(
  { interruptId, status, payload }: z.output<typeof answer>,
  at: number,
): ReadInput<'decide'>['decisions'][number] | null {
  const place = `resume[${at}]`;
  const [, request = '', digest] = /^(r\d{1,9})\.([0-9a-f]{64})$/.exec(interruptId) ?? [];
  if (digest === undefined) {
    throw new InputError(
      `${place}.interruptId: expected the id of an interrupt, as it was sent, got ${show(interruptId)}`,
    );
  }
  if (status === 'cancelled') return null;
  const isApproval = isObject(payload) && Object.hasOwn(payload, 'approved');
  const fields = isApproval
    ? approvalFields(read(approval, payload, { at: `${place}.payload` }))
    : payload;
  const decisions = [{ ...(isObject(fields) && fields), request, digest }];
  const found = OPERATIONS.decide.input.shape.decisions.safeParse(decisions, {
    error: requestIssue,
  });
  const [decision] = found.data ?? [];
  if (decision !== undefined) return decision;
  const [issue] = found.error?.issues ?? [];
  const within = issue?.path.slice(1) ?? [];
  if (!isObject(payload) || (within[0] === 'as' && !Object.hasOwn(payload, 'as'))) {
    throw new InputError(
      `${place}.payload: expected an object of the interrupt's responseSchema, with \`approved\` or \`as\`, got ${show(payload)}`,
    );
  }
  const [field = '', ...deeper] = within;
  const sent = isApproval ? (APPROVAL_FIELDS[String(field)] ?? field) : field;
  const path = sent === '' ? [] : [sent, ...deeper];
  const faults = issue === undefined ? [] : [{ ...issue, path }];
  throw new InputError(firstIssue(faults, payload, `${place}.payload`));
}

/** The fields of an approval in AG-UI, by those of a decision. */
const APPROVAL_FIELDS: Readonly<Record<string, string>> = {
  as: 'approved',
  arguments: 'editedArgs',
  note: 'reason',
};

function approvalFields({ approved, editedArgs, reason }: z.output<typeof approval>) {
  const note = reason !== undefined && { note: reason };
  if (!approved) return { as: 'deny', ...note };
  return editedArgs === undefined
    ? { as: 'approve', ...note }
    : { as: 'edit', arguments: editedArgs, ...note };
}

/** Kinds that AG-UI has no word for are named by perdure. */
const REASONS: Readonly<Record<RequestKind, string>> = {
  approval: 'tool_call',
  safety_check: 'tool_call',
  tool_changed: 'tool_call',
  question: 'input_required',
  client_tool: 'input_required',
  plan: 'confirmation',
  limit: 'perdure:limit',
  outcome_unknown: 'perdure:outcome_unknown',
};

/** Returns an open request as an interrupt. Its id holds the digest, so that each answer names it. */
export function toInterrupt(request: Request, run: string): object {
  const { id, digest, kind, call, shown, expiresAt } = request;
  const {
    tool,
    effect,
    parsed,
    arguments: given,
    why,
    decisions,
    question,
    options,
    form,
    refused,
  } = request;
  const about = { tool, effect, arguments: parsed ?? given, question, options, form, refused };
  return {
    id: `${id}.${digest}`,
    reason: REASONS[kind],
    message: shown,
    ...(call !== undefined && { toolCallId: call }),
    responseSchema: schemaOf(request),
    ...(expiresAt !== null && { expiresAt: new Date(expiresAt).toISOString() }),
    metadata: { perdure: { run, request: id, digest, kind, why, decisions, ...about } },
  };
}

/** Returns the schema of the answer: for an approval, the one that AG-UI recommends. */
function schemaOf({ kind, decisions, form, options }: Request): object {
  const reason = { type: 'string', description: 'for the model' };
  if (kind === 'approval' || kind === 'safety_check') {
    const editedArgs = { type: 'object', description: 'all new arguments' };
    const edit = decisions.includes('edit') && { editedArgs };
    const properties = { approved: { type: 'boolean' }, ...edit, reason };
    return { type: 'object', properties, required: ['approved'], additionalProperties: false };
  }
  const takes = (field: DecisionField): boolean =>
    decisions.some((as) => DECISION_FIELDS[as] === field);
  const result = form ?? { ...(options !== undefined && { examples: options }) };
  const properties = {
    as: { type: 'string', enum: decisions },
    ...(takes('result') && { result }),
    ...(takes('arguments') && { arguments: { type: 'object' } }),
    ...(takes('actions') && { actions: { type: 'array', items: { type: 'string' } } }),
    note: reason,
  };
  return { type: 'object', properties, required: ['as'] };
}
