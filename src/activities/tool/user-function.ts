import type { Context, Info } from '@temporalio/activity';
import type { Json, JsonObject } from '../../core/json.js';
import { toPlain } from '../../tools/result/plain.js';
import { redactJson } from '../../secrets/redact-json.js';
import { redactMessage } from '../../secrets/redact.js';

const MAX_DETAILS_CHARACTERS = 4_000;

/** What a user's function writes to the worker's log: bounded, and without secrets. */
export function logOf(context: Context): (message: string, fields?: JsonObject) => void {
  return (message, fields) =>
    context.log.info(redactMessage(message), { fields: harmless(fields) });
}

/** What a function hands over for people: JSON without secrets, or nothing when it is too large. */
export function harmless(details: Json | undefined): unknown {
  if (details === undefined) return undefined;
  const safe = redactJson(toPlain(details));
  return JSON.stringify(safe).length <= MAX_DETAILS_CHARACTERS ? safe : undefined;
}

export function runOf(info: Info): { id: string; runId: string } {
  const { workflowId = '', runId = '' } = info.workflowExecution ?? {};
  return { id: workflowId, runId };
}
