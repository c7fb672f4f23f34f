import { condition } from '@temporalio/workflow';
import { findTool, openCalls } from '../../core/calls/batch.js';
import { callsAtOnce, toolAt } from '../../core/graph/node-tool.js';
import { apply, eventsOf } from '../../core/loop.js';
import { requestDue } from '../../core/requests/request-due.js';
import { interruptionOf } from '../../core/work/interruption.js';
import { batchOf, openCallById } from '../../core/turn.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { findWork } from '../../core/work/work.js';
import { checkProposal } from '../check-decision.js';
import type { RunContext } from '../run-context.js';
import { actionNow, mustLeave } from '../segment-facts.js';
import { executeAgentCall } from './execute-agent-call.js';
import { executeToolCall } from './execute-tool-call.js';

/**
 * Executes calls of the open batch: the first ones (`callsAtOnce`) are scheduled in one workflow
 * task, and each further one when a call ends. No call begins after an interruption or a pause, or
 * when the segment is full.
 */
export async function runCalls(run: RunContext, calls: readonly ToolCall[]): Promise<void> {
  const waiting = [...calls];
  const taken = new Set(calls.map(({ id }) => id));
  const lane = async (): Promise<void> => {
    for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) {
      if (interruptionOf(run.state) !== null) return;
      if (mayBegin(run, call)) await runCall(run, call);
      // A call that now requests a decision may begin again.
      taken.delete(call.id);
    }
  };
  if (isAlone(run)) await lane();
  else await runWithDecided(run, { waiting, taken, lane });
}

/** Whether the call is the only work, so no decision or revoked grant can affect other work. */
function isAlone({ state }: RunContext): boolean {
  const batch = batchOf(state);
  const isSequential = state.config.definition.toolCalls === 'sequential';
  return batch === null || isSequential || openCalls(state, batch).length === 1;
}

/**
 * Whether a call that waited for a lane may still begin. A grant may have been revoked, or the run
 * paused.
 */
function mayBegin(run: RunContext, call: ToolCall): boolean {
  const { state } = run;
  if (requestDue(state, call, Date.now()) !== null) return false;
  return findWork(state, call.id) !== undefined || !(state.paused || mustLeave(run));
}

interface Lanes {
  /** Calls that no lane has taken yet. */
  readonly waiting: ToolCall[];
  /** Ids of the calls that wait for a lane or occupy one. */
  readonly taken: Set<string>;
  readonly lane: () => Promise<void>;
}

/** Runs calls in lanes, including each call that a decision allows in the meantime. */
async function runWithDecided(run: RunContext, { waiting, taken, lane }: Lanes): Promise<void> {
  let busy = 0;
  const faults: unknown[] = [];
  const decided = (): readonly ToolCall[] => {
    if (mustLeave(run)) return [];
    const action = actionNow(run);
    if (action.type !== 'run-calls') return [];
    // The calls of a plan become ready one after another.
    return action.calls.filter(
      ({ id, node }) => !taken.has(id) && (node ?? findWork(run.state, id)) !== undefined,
    );
  };
  for (;;) {
    raiseRequests(run);
    for (const call of decided()) {
      taken.add(call.id);
      waiting.push(call);
    }
    for (let free = Math.min(callsAtOnce(run.state) - busy, waiting.length); free > 0; free -= 1) {
      busy += 1;
      void lane()
        .catch((error: unknown) => faults.push(error))
        .finally(() => (busy -= 1));
    }
    if (busy === 0) break;
    const before = busy;
    const asks = (): boolean => actionNow(run).type === 'raise-requests';
    await condition(() => busy < before || asks() || decided().length > 0);
  }
  if (faults.length > 0) throw faults[0];
}

/**
 * Raises the requests that have become due while calls run, as the loop does between its actions.
 */
function raiseRequests(run: RunContext): void {
  const action = actionNow(run);
  if (action.type !== 'raise-requests') return;
  for (const event of eventsOf(action, Date.now())) apply(run, event);
  run.publishRequests();
}

async function runDecidedCall(run: RunContext, call: ToolCall): Promise<void> {
  await checkProposal(run, call.id);
  const work = findWork(run.state, call.id);
  // The decision may have ended the call, or the request is still open.
  if (work !== undefined && work.phase !== 'asking') await executeCall(run, call);
}

function runCall(run: RunContext, call: ToolCall): Promise<unknown> {
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
  return tool.kind === 'agent'
    ? executeAgentCall(run, { call, tool })
    : executeToolCall(run, { call, tool });
}
