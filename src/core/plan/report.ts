import { headOf } from '../text/whole-text.js';
import { isObject, type Json, type JsonObject } from '../json.js';
import { planIn, type Plan } from './plan.js';

/** Maximum characters of one result, and of all results together. */
const MAX_RESULT = 4_000;
const MAX_RESULTS = 24_000;

/** The data for a report. */
export interface ReportSource {
  readonly values: JsonObject;
  readonly plan?: string | undefined;
  readonly results?: string | undefined;
  readonly error?: string | undefined;
}

/**
 * Returns the report that the model reads before it answers: actions that were left out, failures,
 * and the result of each action. Null if nothing was planned or done; the conversation is enough
 * then.
 */
export function reportText(source: ReportSource): string | null {
  const done = doneText(source);
  if (done === null) return null;
  return [
    done,
    'Answer the user in one to three sentences: what was done, with names, times, and ids; what was not ' +
      'done, and why; and what could be tried instead. Write lists as bullets. Claim nothing that is not above.',
  ].join('\n');
}

/** Returns the report without the request for an answer; null if nothing was planned or done. */
export function doneText({ values, plan: field, results, error }: ReportSource): string | null {
  const plan = field === undefined ? null : planIn(values, field);
  const fault = fieldOf(values, error);
  const parts = [
    ...(isObject(fault) ? [`Planning failed: ${textOf(fault['message'])}`] : []),
    ...(plan?.dropped
      ? [`Not done, because a person left them out: ${plan.dropped.join(', ')}.`]
      : []),
    ...(plan?.unanswered
      ? [`Not done, because the question expired: ${plan.unanswered.join(', ')}.`]
      : []),
    ...resultLines(plan, fieldOf(values, results)),
    ...openLines(plan, fieldOf(values, results)),
  ];
  if (parts.length === 0) return null;
  return ['[What was done. The user does not see this.]', ...parts].join('\n');
}

function fieldOf(values: JsonObject, field: string | undefined): Json | undefined {
  return field !== undefined && Object.hasOwn(values, field) ? values[field] : undefined;
}

function resultLines(plan: Plan | null, results: Json | undefined): readonly string[] {
  const ended = isObject(results) ? Object.entries(results) : [];
  const tools = new Map(plan?.actions.map(({ id, tool }) => [id, tool]));
  let left = MAX_RESULTS;
  const reads = (plan?.done ?? []).map(({ id, tool, result }) => line(id, tool, result));
  const lines = [...reads, ...ended.map(([id, result]) => line(id, tools.get(id) ?? '', result))];
  return lines.map((text) => {
    const room = Math.max(80, Math.min(MAX_RESULT, left));
    left -= Math.min(text.length, room);
    if (text.length <= room) return text;
    return `${headOf(text, room)}… [cut: ${text.length} characters]`;
  });
}

/**
 * Returns the lines for actions that never ran although no person left them out, such as those of
 * an unconfirmed plan.
 */
function openLines(plan: Plan | null, results: Json | undefined): readonly string[] {
  const ended = isObject(results) ? results : {};
  const open = (plan?.actions ?? []).filter(({ id }) => !Object.hasOwn(ended, id));
  return open.length === 0
    ? []
    : [`Not done: ${open.map(({ id, tool }) => `${id} ${tool}`).join(', ')}.`];
}

function line(id: string, tool: string, result: unknown): string {
  const { ok, value, error } = isObject(result) ? result : {};
  const what = ok === true ? `done: ${textOf(value)}` : `failed: ${textOf(error)}`;
  return `- ${id} ${tool} ${what}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
