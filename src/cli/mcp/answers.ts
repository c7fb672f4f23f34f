import type { CallToolResult } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Request } from '../../core/requests/request.js';
import { headline } from '../../core/requests/request-view.js';
import { visible } from '../../core/text/summaries.js';
import { printable } from '../../core/text/hidden.js';
import type { Outcome } from '../../core/outcome.js';
import { RUN_STATUSES, type RunStatus } from '../../core/status.js';
import { redactMessage } from '../../secrets/redact.js';
import type { ErrorCode } from '../exit-codes.js';
import { errorCode } from '../reports/report-error.js';

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
    status: status.status,
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
  return { request: id, kind, call, tool, shown: visible(headline(request)), fix };
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
export function withErrorCode<Given extends readonly unknown[]>(
  handle: (...given: Given) => CallToolResult | Promise<CallToolResult>,
): (...given: Given) => Promise<CallToolResult> {
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
