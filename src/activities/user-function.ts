import type { Context, Info } from '@temporalio/activity';
import { parseJson, type Json, type JsonObject } from '../core/json.js';
import { toPlain } from '../tools/plain.js';
import { redact } from '../tools/redact.js';

const MAX_DETAILS_CHARACTERS = 4_000;

/** What a user's function writes to the worker's log: bounded, and without secrets. */
export function logOf(context: Context): (message: string, fields?: JsonObject) => void {
  return (message, fields) => context.log.info(redact(message), { fields: harmless(fields) });
}

/** What a function hands over for people: JSON without secrets, or nothing when it is too large. */
export function harmless(details: Json | undefined): unknown {
  if (details === undefined) return undefined;
  const text = redact(JSON.stringify(toPlain(details)));
  return text.length <= MAX_DETAILS_CHARACTERS ? parseJson(text) : undefined;
}

export function runOf(info: Info): { id: string; runId: string } {
  const { workflowId = '', runId = '' } = info.workflowExecution ?? {};
  return { id: workflowId, runId };
}
