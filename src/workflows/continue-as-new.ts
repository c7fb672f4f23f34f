import {
  allHandlersFinished,
  condition,
  makeContinueAsNewFunc,
  upsertMemo,
  workflowInfo,
} from '@temporalio/workflow';
import { byteLength } from '../core/inbox.js';
import type { RunInput } from '../core/input/input.js';
import { reduce } from '../core/reduce.js';
import { nextMemo } from '../core/segments/carry.js';
import { STATE_VERSION, type CarriedState } from '../core/segments/migrations.js';
import type { RunState } from '../core/state.js';
import { archiveForNextSegment } from './archive-messages.js';
import { startDeadlineTimer } from './deadline-timer.js';
import type { AgentWorkflow } from './messages/definitions.js';
import { continueRequests } from './requests.js';
import { recordNow, type RunContext } from './run-context.js';
import { mustLeave } from './segment-facts.js';

/** Maximum bytes of a segment's input. The server always refuses an input over 2 MiB. */
const MAX_INPUT_BYTES = 1.5 * 1024 * 1024;
/** Number of message ids kept in a state that would otherwise be too large. */
const MIN_IDS = 100;

/**
 * Continues the run in a new segment between two steps, while nothing is in flight and no handler
 * runs. If the messages cannot be archived, the run stays in its segment and tries again some steps
 * later.
 */
export async function continueAsNew(run: RunContext): Promise<void> {
  if (!(await archiveForNextSegment(run))) return;
  run.leaving = true;
  if (!allHandlersFinished()) await condition(allHandlersFinished);
  run.leaving = false;
  // A cancellation may have arrived in the meantime.
  if (!mustLeave(run)) return;
  run.deadlineTimer?.cancel();
  run.expiryTimer?.scope.cancel();
  run.expiryTimer = null;
  const next = nextArguments(run);
  if (next === null) {
    recordNow(run, { type: 'segment-kept' });
    // The history must show why the run stays in its segment.
    upsertMemo({ kept: run.state.segments });
    startDeadlineTimer(run);
    return continueRequests(run);
  }
  const [input, carried] = next;
  run.state = carried.state;
  const { memo, workflowId } = workflowInfo();
  // oxlint-disable-next-line no-restricted-properties -- as a number, it needs no time zone
  const began = workflowInfo().startTime.getTime();
  const move = makeContinueAsNewFunc<AgentWorkflow>({
    // A pinned run moves to the newest build only here.
    initialVersioningBehavior: 'AUTO_UPGRADE',
    memo: nextMemo(run.state, { memo, began, run: workflowId, tags: input.tags }),
  });
  await move(input, carried);
}

/**
 * Returns the arguments of the next segment. If they exceed the maximum input size, nonessential
 * parts are omitted; null if even that is not enough.
 */
function nextArguments(run: RunContext): readonly [RunInput, CarriedState] | null {
  const { context, ...input } = withoutMessage(run.input);
  const hasContext = run.state.config.contextBlob === undefined && context !== undefined;
  const next: RunInput = { ...input, ...(hasContext && { context }) };
  const state = reduce(run.state, { type: 'segment-begun' });
  for (const each of [state, reduced(state)]) {
    const carried: CarriedState = { schema: STATE_VERSION, state: each, shown: run.shown };
    if (byteLength(JSON.stringify([next, carried])) <= MAX_INPUT_BYTES) return [next, carried];
  }
  return null;
}

/** The fields of the input that only the first segment uses. */
const TAKEN: ReadonlySet<string> = new Set([
  'message',
  'attachments',
  'artifacts',
  'messages',
  'prompt',
  'promptArgs',
  'settings',
  'turnContext',
] satisfies (keyof RunInput)[]);

/** Returns the input without the fields that only the first segment uses. */
function withoutMessage(input: RunInput): RunInput {
  const left = Object.entries(input).filter(([name]) => !TAKEN.has(name));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only optional fields are left out
  return Object.fromEntries(left) as unknown as RunInput;
}

/** Returns the state without the outcomes of earlier turns, and with fewer message ids. */
function reduced(state: RunState): RunState {
  const seen = state.inbox.seen.slice(-MIN_IDS);
  return { ...state, recent: [], inbox: { ...state.inbox, seen } };
}
