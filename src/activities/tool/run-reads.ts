import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { RunRead } from '../../core/guards/recorded.js';
import type { RunReadsInput, RunReadsResult, RunToolInput } from '../../core/run/contract.js';
import { callSummary } from '../../core/state/summaries.js';
import { type ActivityDependencies } from '../activity-context.js';
import { runKey } from '../prompt.js';
import { SlowReadError, TOOL_FAILED } from './execute-call.js';
import { executeTool } from './run-tool.js';

/**
 * Milliseconds for the inline calls of one reply together. Queries, messages, and a cancellation
 * wait for them.
 */
const BUDGET_MS = 200;
/**
 * Bytes of JSON that the results of one reply may have together. A workflow task over 4 MiB would
 * end the run, and the server refuses a value over 2 MiB.
 */
const MAX_BYTES = 1024 * 1024;

/**
 * Executes the calls of one reply within the workflow task, as a local activity. A call that takes
 * too long, throws while attempts remain, or cannot be executed here gets no result; an activity of
 * its own executes it next. Never rejects because of a tool.
 */
export async function runReads(
  deps: ActivityDependencies,
  { calls, atOnce }: RunReadsInput,
): Promise<RunReadsResult> {
  const context = Context.current();
  const endsAt = performance.now() + BUDGET_MS;
  const ended = new Map<string, RunRead>();
  const begun = new Set<string>();
  const waiting = (await mayBeFatal(deps, context, calls)) ? [] : [...calls];
  const left = (): number => endsAt - performance.now();
  /** The longest execution of each tool so far, in ms. A call that would not fit is not begun. */
  const took = new Map<string, number>();
  const takeNext = (): RunToolInput | undefined => {
    const place = waiting.findIndex(({ call }) => left() > (took.get(call.name) ?? 0));
    return place < 0 ? undefined : waiting.splice(place, 1)[0];
  };
  const openLane = async (): Promise<void> => {
    for (let input = takeNext(); input !== undefined; input = takeNext()) {
      const { id, name } = input.call;
      const began = performance.now();
      begun.add(id);
      ended.set(id, await readInline(deps, context, { input, withinMs: left() }));
      took.set(name, Math.max(took.get(name) ?? 0, performance.now() - began));
    }
  };
  await within(left(), Promise.all(Array.from({ length: atOnce }, openLane)));
  waiting.splice(0);
  const reads = calls.map(
    ({ call }) => ended.get(call.id) ?? unread(call, begun.has(call.id) ? 'slow' : 'elsewhere'),
  );
  return { reads: fitting(reads) };
}

/**
 * Whether an earlier attempt at this workflow task may have ended because its worker died of a call.
 * The server repeats a workflow task without limit, and an activity only a few times, so activities
 * execute the calls then. A worker that has recorded the reply itself need not ask the server.
 */
async function mayBeFatal(
  { transcripts }: ActivityDependencies,
  { client, info }: Context,
  calls: readonly RunToolInput[],
): Promise<boolean> {
  if (calls.every(({ call }) => transcripts.hasReply(runKey(info), call.id))) return false;
  const { namespace, workflowExecution: execution } = info;
  if (execution === undefined) return true;
  try {
    const { pendingWorkflowTask: task } = await client.workflowService.describeWorkflowExecution({
      namespace,
      execution,
    });
    return (task?.attempt ?? 1) > 1;
  } catch {
    return true;
  }
}

/** Never rejects. */
async function readInline(
  deps: ActivityDependencies,
  context: Context,
  { input, withinMs }: { readonly input: RunToolInput; readonly withinMs: number },
): Promise<RunRead> {
  const { call } = input;
  try {
    const result = await executeTool(deps, context, { input, generator: null, withinMs });
    if (result.ok !== true && result.ok !== false) return unread(call, 'elsewhere');
    return { call: call.id, shown: callSummary(call), result };
  } catch (error) {
    if (error instanceof SlowReadError) return unread(call, 'slow');
    const threw = error instanceof ApplicationFailure && error.type === TOOL_FAILED;
    return unread(call, threw ? 'threw' : 'elsewhere');
  }
}

function unread(call: RunToolInput['call'], why: NonNullable<RunRead['why']>): RunRead {
  return { call: call.id, shown: callSummary(call), why };
}

/** Waits for work, at most this many milliseconds. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, over]);
  clearTimeout(timer);
}

/** Returns the reads without the results that would make them too large together. */
function fitting(reads: readonly RunRead[]): readonly RunRead[] {
  let bytes = 0;
  return reads.map((read) => {
    const size = Buffer.byteLength(JSON.stringify(read));
    if (bytes + size > MAX_BYTES) return { call: read.call, shown: read.shown, why: 'elsewhere' };
    bytes += size;
    return read;
  });
}
