import { condition } from '@temporalio/workflow';
import { findTool, openCalls, inlineCalls } from '../../core/calls/batch.js';
import { callsAtOnce, toolAt } from '../../core/state/turn-definition.js';
import { apply, toEvents } from '../../core/interpret/loop.js';
import { requestDue } from '../../core/requests/raise-requests.js';
import { getInterruption } from '../../core/state/change.js';
import { getOpenBatch, openCallById } from '../../core/state/turn.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { findWork } from '../../core/state/work.js';
import { checkProposal } from '../requests.js';
import { type RunContext, actionNow, mustLeave, runsLocally } from '../run-context.js';
import { executeAgentCall, executeInline, executeToolCall, mayExecute } from './execute-call.js';

/**
 * Executes calls of the open batch: the first ones (`callsAtOnce`) are scheduled in one workflow
 * task, and each further one when a call ends. A call that a decision allows in the meantime is
 * executed, too. No call begins after an interruption or a pause, or when the segment is full.
 */
export async function runCalls(run: RunContext, calls: readonly ToolCall[]): Promise<void> {
  const inline = inlineCalls(run.state);
  if (inline.length > 0 && runsLocally(run, 'runReads')) return await executeInline(run, inline);
  if (isAlone(run)) {
    for (const call of calls) await runCall(run, call);
    return;
  }
  const lanes = createCallLanes(run);
  for (let ready = calls; ; ready = readyCalls(run, lanes)) {
    raiseRequests(run);
    lanes.add(ready);
    if (lanes.isIdle()) break;
    await condition(
      () => lanes.isIdle() || areRequestsDue(run) || readyCalls(run, lanes).length > 0,
    );
  }
  if (lanes.faults.length > 0) throw lanes.faults[0];
}

/** Whether the call is the only work, so no decision or revoked grant can affect other work. */
function isAlone({ state }: RunContext): boolean {
  const batch = getOpenBatch(state);
  const isSequential = state.config.definition.toolCalls === 'sequential';
  return batch === null || isSequential || openCalls(state, batch).length === 1;
}

/** Calls that wait or are executed, several at a time. */
interface CallLanes {
  /** Adds calls; each begins as soon as a lane is free. */
  readonly add: (calls: readonly ToolCall[]) => void;
  /** Whether the call waits or is executed. */
  readonly has: (call: ToolCall) => boolean;
  /** Whether all calls have ended. */
  readonly isIdle: () => boolean;
  /** Exceptions of the engine, which end the turn. */
  readonly faults: readonly unknown[];
}

function createCallLanes(run: RunContext): CallLanes {
  const waiting: ToolCall[] = [];
  const ids = new Set<string>();
  const faults: unknown[] = [];
  let busy = 0;
  // A lane takes its next call as soon as one ends, without waiting for a condition.
  const openLane = async (): Promise<void> => {
    for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) {
      try {
        await runCall(run, call);
        // A call that now requests a decision may begin again.
        ids.delete(call.id);
      } catch (error) {
        faults.push(error);
      }
    }
    busy -= 1;
  };
  return {
    add: (calls) => {
      for (const call of calls) ids.add(call.id);
      waiting.push(...calls);
      for (let free = callsAtOnce(run.state) - busy; free > 0 && waiting.length > 0; free -= 1) {
        busy += 1;
        void openLane();
      }
    },
    has: ({ id }) => ids.has(id),
    isIdle: () => busy === 0,
    faults,
  };
}

/** Returns the calls that have become ready: by a decision, or as the next ones of a plan. */
function readyCalls(run: RunContext, lanes: CallLanes): readonly ToolCall[] {
  if (mustLeave(run)) return [];
  const action = actionNow(run);
  if (action.type !== 'run-calls') return [];
  return action.calls.filter(
    (call) => !lanes.has(call) && (call.node ?? findWork(run.state, call.id)) !== undefined,
  );
}

function areRequestsDue(run: RunContext): boolean {
  return actionNow(run).type === 'raise-requests';
}

/**
 * Raises the requests that have become due while calls run, as the loop does between its actions.
 */
function raiseRequests(run: RunContext): void {
  const action = actionNow(run);
  if (action.type !== 'raise-requests') return;
  for (const event of toEvents(action, Date.now())) apply(run, event);
  run.publishRequests();
}

/**
 * Whether a call that waited for a lane may still begin. The run may be interrupted or paused, or a
 * grant revoked.
 */
function mayBegin(run: RunContext, call: ToolCall): boolean {
  const { state } = run;
  if (getInterruption(state) !== null) return false;
  if (requestDue(state, call, Date.now()) !== null) return false;
  return findWork(state, call.id) !== undefined || !(state.paused || mustLeave(run));
}

async function runDecidedCall(run: RunContext, call: ToolCall): Promise<void> {
  await checkProposal(run, call.id);
  const work = findWork(run.state, call.id);
  // The decision may have ended the call, or the request is still open.
  if (work !== undefined && work.phase !== 'asking') await executeCall(run, call);
}

/** Executes a call, unless it may no longer begin. */
function runCall(run: RunContext, call: ToolCall): Promise<unknown> {
  if (!mayBegin(run, call)) return Promise.resolve();
  const isProposed = findWork(run.state, call.id)?.proposal !== undefined;
  return isProposed ? runDecidedCall(run, call) : executeCall(run, call);
}

function executeCall(run: RunContext, { id }: ToolCall): Promise<unknown> {
  // Reads the call again, because a person may have changed the arguments while it waited.
  const call = openCallById(run.state, id);
  if (call === undefined) return Promise.resolve();
  const known = findTool(run.state, call.name);
  const tool = known && toolAt(run.state.config.definition, known, call);
  // A call of an unknown tool gets its result when the batch opens.
  if (tool === undefined) throw new Error(`no tool "${call.name}"`);
  if (tool.kind === 'agent') return executeAgentCall(run, { call, tool });
  // The caller executes it, after a request; only the rules are applied here.
  if (tool.kind === 'client') return mayExecute(run, { call, tool });
  return executeToolCall(run, { call, tool });
}
