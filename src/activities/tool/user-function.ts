import type { Context, Info } from '@temporalio/activity';
import type { Json, JsonObject } from '../../core/json.js';
import { toPlain } from '../../tools/result/plain.js';
import { redactJson } from '../../secrets/redact-json.js';
import { redactMessage } from '../../secrets/redact.js';

const MAX_DETAILS_CHARACTERS = 4_000;

/**
 * Creates the `log` of a user's function. It writes to the worker's log, bounded and without
 * secrets.
 */
export function createLog(context: Context): (message: string, fields?: JsonObject) => void {
  return (message, fields) =>
    context.log.info(redactMessage(message), { fields: toSafeDetails(fields) });
}

/**
 * Returns details for people as JSON without secrets, or undefined if they have over 4,000
 * characters.
 */
export function toSafeDetails(details: Json | undefined): unknown {
  if (details === undefined) return undefined;
  const safe = redactJson(toPlain(details));
  return JSON.stringify(safe).length <= MAX_DETAILS_CHARACTERS ? safe : undefined;
}

/** Returns the workflow id and the Temporal run id of the run that scheduled an activity. */
export function toRunIds({ workflowExecution }: Info): { id: string; runId: string } {
  const { workflowId = '', runId = '' } = workflowExecution ?? {};
  return { id: workflowId, runId };
}
