import type { RunStatus } from '../core/state/status.js';
import { formatDuration } from '../core/text/text.js';
import type { Request } from '../core/transcript/request.js';
import type { MemoryHost } from './host.js';
import { type Script, type Stage, nextWhenQuiet, react } from './script.js';
import { type Segment, isClosed } from './segment.js';
import type { MemoryServer } from './server.js';

/** The run cannot go on: it waits for something that does not come. */
export class DeadlockError extends Error {}

/** Lets the run go on until it has ended, or until it waits for a message that nobody sends. */
export async function play(
  { server, pace, client }: MemoryHost,
  {
    script,
    stage,
    until,
  }: { readonly script: Script; readonly stage: Stage; readonly until: number },
): Promise<void> {
  const { clock } = server;
  for (;;) {
    await pace.idle();
    const main = server.runs.get(stage.id)?.at(-1);
    if (main === undefined || isClosed(main)) return;
    const open = await openRequests(server.runs.values(), (id) =>
      client.workflow.getHandle(id).query<readonly Request[]>('pending'),
    );
    let hasReacted = false;
    for (const one of open) hasReacted = (await react(script, stage, one)) || hasReacted;
    if (hasReacted) continue;
    const status = await client.workflow.getHandle(stage.id).query<RunStatus>('status');
    const isWaiting = status.status === 'waiting_message';
    if (await nextWhenQuiet(script, stage, isWaiting)) continue;
    const hasScript = clock.pending().some(({ kind }) => kind === 'script');
    if (isWaiting && !hasScript) return;
    const stuck = deadlock({ server, status, open, script, until });
    if (stuck !== null) throw new DeadlockError(stuck);
    clock.advance();
  }
}

interface OpenRequest {
  readonly run: string;
  readonly request: Request;
}

async function openRequests(
  runs: Iterable<readonly Segment[]>,
  pendingOf: (id: string) => Promise<readonly Request[]>,
): Promise<readonly OpenRequest[]> {
  const all: OpenRequest[] = [];
  for (const segments of runs) {
    const last = segments.at(-1);
    if (last === undefined || isClosed(last) || last.workflowType !== 'agent') continue;
    for (const request of await pendingOf(last.workflowId)) {
      all.push({ run: last.workflowId, request });
    }
  }
  return all;
}

/** After this many attempts, only something outside the run can help an activity. */
const HOPELESS_ATTEMPTS = 20;

/** Returns why the run cannot go on; null if time alone may help. */
function deadlock({
  server,
  status,
  open,
  script,
  until,
}: {
  readonly server: MemoryServer;
  readonly status: Pick<RunStatus, 'status' | 'reason' | 'message'>;
  readonly open: readonly { readonly run: string; readonly request: Request }[];
  readonly script: Script;
  /** The Unix time in ms at which the run has taken too long. */
  readonly until: number;
}): string | null {
  const { clock, activities } = server;
  const pending = [...activities.pending.values()].flatMap((all) => [...all.values()]);
  const isHopeless = pending.some(({ attempt }) => attempt > HOPELESS_ATTEMPTS);
  const next = clock
    .pending()
    .find(({ kind }) => kind !== 'timeout' && (kind !== 'retry' || !isHopeless));
  const last = next?.kind === 'workflow' ? (script.moments?.until ?? until) : until;
  if (next !== undefined && next.at <= Math.min(last, until)) return null;
  const { reason, message } = status;
  const why = [status.status, reason, message].filter((one) => one !== null).join(': ');
  const [first] = open;
  if (first !== undefined && (next === undefined || last < until))
    return openRequest(first, script);
  if (next === undefined) return `the run cannot go on, and no script changes that: ${why}`;
  const late = formatDuration(next.at - until, { as: 'exact' });
  return `the run takes too long: the next event comes ${late} after the end of \`within\`: ${why}`;
}

function openRequest(
  { run, request }: { readonly run: string; readonly request: Request },
  { requests }: Script,
): string {
  const { id, kind, tool, shown, decisions } = request;
  const refused = requests.get(`${run} ${id}`)?.decided.findLast((one) => one.refused)?.refused;
  const what = `request ${id} (${kind}${tool === undefined ? '' : ` of ${tool}`}: ${shown})`;
  const why =
    refused === undefined ? 'no script decides it' : `the decision was refused: ${refused}`;
  const key = kind === 'approval' && tool !== undefined ? tool : kind;
  return (
    `run ${run} waits for a decision: ${what}: ${why}; it takes ${decisions.join(', ')}: ` +
    `add it to \`on.request\`, such as { ${key}: … }`
  );
}
