import { CommandError } from '../exit-codes.js';
import { noRequest } from '../../client/read-request.js';
import { toRunStatus } from '../../client/status.js';
import type { Request } from '../../core/requests/request.js';
import type { CliContext } from '../context.js';
import { requireOpenRun, type OpenedRun } from '../open-run.js';
import { nextCommand } from '../reports/next-command.js';

/** An open request, with the run that made it. */
export interface OpenedRequest {
  readonly opened: OpenedRun;
  readonly request: Request;
}

/**
 * Reads an open request of a run by its id, or by the id of its call. Needs no worker. If there is
 * none, throws an error that lists the run's open requests.
 */
export async function openRequest(
  context: CliContext,
  run: string,
  name: string,
): Promise<OpenedRequest> {
  const opened = await requireOpenRun(context, run);
  const { pending } = toRunStatus(opened.run, Date.now());
  const request = requestNamed(pending, name);
  if (request !== undefined) return { opened, request };
  throw new CommandError(
    'no_request',
    `${noRequest(run, name, pending)}; list requests with: ${nextCommand(context, 'inbox')}`,
  );
}

/** Returns the request with this id, else the request about the call with this id. */
export function requestNamed(pending: readonly Request[], name: string): Request | undefined {
  return pending.find(({ id }) => id === name) ?? pending.find(({ call }) => call === name);
}
