import { listRequests } from '../../client/requests.js';
import { toRunStatus } from '../../client/status.js';
import type { OpenRequest } from '../../client/memo-requests.js';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { noteServer } from '../hosting/note-server.js';
import { requireOpenRun } from '../open-run.js';
import { nextCommandAbout } from '../reports/next-command.js';
import { inboxLines } from '../requests/inbox-lines.js';
import { openRequest } from '../requests/open-request.js';
import { columnsOf, readable, shownRequest } from '../requests/show-request.js';

export interface InboxOptions {
  /** Show only this run's requests, each in full. */
  readonly id?: string;
  readonly request?: string;
  readonly agent?: string;
  /** Do not truncate arguments. */
  readonly full?: boolean;
}

/** `inbox [ID [REQUEST]]`: lists the requests that runs wait for, oldest first. Needs no worker. */
export const inbox: Command<InboxOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('[id]', 'show the requests of this run in full; default: list those of all runs')
        .argument('[request]', 'show only this request'),
      'agent',
      'full',
    ),
  async run(context, { id, request, agent, full = false }) {
    if (id === undefined && full) {
      throw new UsageError('--full: expected a run, got none; give its id, or omit --full');
    }
    if (id !== undefined && agent !== undefined) {
      throw new UsageError('--agent: expected no ID, got both; omit one of them');
    }
    return id === undefined
      ? await listAll(context, agent)
      : await showRun(context, { id, request, full });
  },
};

async function listAll(context: CliContext, agent: string | undefined): Promise<ExitCode> {
  noteServer(context, await context.server());
  const { requests, more, unreadable } = await listRequests(await context.client(), { agent });
  if (context.options.json) context.out(JSON.stringify(requests));
  else if (requests.length === 0) {
    if (unreadable.length === 0) context.note('No run is waiting for a decision.');
  } else {
    const show = (one: OpenRequest) => nextCommandAbout(context, ['inbox', one.run, one.id]);
    const options = { width: columnsOf('stdout'), now: Date.now(), show };
    for (const line of inboxLines(requests, options)) context.out(line);
  }
  for (const { run, why } of unreadable)
    context.note(`Run ${visible(run)} may wait for a decision: ${why}`);
  if (more) context.note('There are more requests; decide some, or filter by --agent.');
  return EXIT.completed;
}

async function showRun(
  context: CliContext,
  { id, request, full }: { id: string; request: string | undefined; full: boolean },
): Promise<ExitCode> {
  const { opened, requests } =
    request === undefined
      ? await allOf(context, id)
      : await openRequest(context, id, request).then((found) => ({
          opened: found.opened,
          requests: [found.request],
        }));
  const { run } = opened;
  if (context.options.json) {
    const whole = requests.map(async (each) =>
      full ? (await readable(context, each)).request : each,
    );
    const list = (await Promise.all(whole)).map((each) => ({ run: id, agent: run.agent, ...each }));
    context.out(JSON.stringify(list));
    return EXIT.completed;
  }
  if (requests.length === 0) context.note('The run is not waiting for a decision.');
  for (const [at, one] of requests.entries()) {
    if (at > 0) context.out('');
    const lines = await shownRequest(context, { run, request: one }, { to: 'stdout', full });
    for (const line of lines) context.out(line);
  }
  return EXIT.completed;
}

async function allOf(context: CliContext, id: string) {
  const opened = await requireOpenRun(context, id);
  return { opened, requests: toRunStatus(opened.run, Date.now()).pending };
}
