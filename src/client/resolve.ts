import type { Client } from '@temporalio/client';
import { RefusedError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { isList } from '../core/text/json.js';
import type { Decision, DecisionReceipt } from '../core/transcript/request.js';
import { readRun } from '../history/read-run.js';
import { type ResolveOptions, resolveRequests } from '../updates/decide.js';
import { decidedText } from './requests.js';
import { toRunStatus } from './status.js';

/**
 * Decides as `resolveRequests` does. If the run has ended, the refusal says who decided what about the
 * request, and when.
 */
export async function resolveOpen(
  client: Client,
  run: string,
  decisions: Decision | readonly Decision[],
  options?: ResolveOptions,
): Promise<readonly DecisionReceipt[]> {
  try {
    return await resolveRequests(client, run, decisions, options);
  } catch (error) {
    if (!RefusedError.isInstance(error) || error.reason !== 'run_ended') throw error;
    const names = (isList(decisions) ? decisions : [decisions]).map(({ request }) => request);
    const text = await endedText(client, run, names).catch(() => error.message);
    throw new RefusedError(text, { cause: error, reason: 'run_ended' });
  }
}

/** Returns why requests of a run that has ended cannot be decided. */
async function endedText(client: Client, run: string, names: readonly string[]): Promise<string> {
  const status = toRunStatus(await readRun(client, run), Date.now());
  const decided = names.map((name) => decidedText(status, name)).find((text) => text !== null);
  if (decided !== undefined) return `${decided}; read the result of the run, which has ended`;
  const closed = names.map((name) => visible(name)).join(', ');
  return `run ${visible(run)} has ended, so ${closed} is no longer open; read its result`;
}
