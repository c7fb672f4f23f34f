import { condition } from '@temporalio/workflow';
import { findTool } from '../../core/calls/batch.js';
import { NEVER_FULL, nextAction } from '../../core/next-action.js';
import { askingWork } from '../../core/requests/open-requests.js';
import { interruptionOf } from '../../core/work/interruption.js';
import { openCallById } from '../../core/turn.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { findWork } from '../../core/work/work.js';
import { checkProposal } from '../check-decision.js';
import type { RunContext } from '../run-context.js';
import { mustLeave } from '../segment-facts.js';
import { executeAgentCall } from './execute-agent-call.js';
import { executeToolCall } from './execute-tool-call.js';

/** Calls that are executed at the same time. */
const MAX_PARALLEL_CALLS = 5;

/**
 * Executes calls of the open batch: the first five are scheduled in one workflow task, and each further
 * one when a call ends. No call begins after an interruption or a pause, or when the segment is full.
 */
export async function runCalls(run: RunContext, calls: readonly ToolCall[]): Promise<void> {
  const waiting = [...calls];
  const taken = new Set(calls.map(({ id }) => id));
  const lane = async (): Promise<void> => {
    for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) {
      if (interruptionOf(run.state) !== null) return;
      const isNew = findWork(run.state, call.id) === undefined;
      if (isNew && (run.state.paused || mustLeave(run))) continue;
      await runCall(run, call);
      // If it asks for a decision now, it may begin again.
      taken.delete(call.id);
    }
  };
  // A call that is alone has nothing beside it that a decision could let begin.
  if (calls.length === 1 && askingWork(run.state).length === 0) await lane();
  else await runWithDecided(run, { waiting, taken, lane });
}

interface Lanes {
  /** Calls that no lane has taken yet. */
  readonly waiting: ToolCall[];
  /** Ids of the calls that wait for a lane, or are in one. */
  readonly taken: Set<string>;
  readonly lane: () => Promise<void>;
}

/** Runs calls in lanes, and with them each call that a decision lets begin meanwhile. */
async function runWithDecided(run: RunContext, { waiting, taken, lane }: Lanes): Promise<void> {
  let busy = 0;
  const faults: unknown[] = [];
  const decided = (): readonly ToolCall[] => {
    if (mustLeave(run)) return [];
    const action = nextAction(run.state, NEVER_FULL, Date.now());
    if (action.type !== 'run-calls') return [];
    return action.calls.filter(({ id }) => !taken.has(id) && findWork(run.state, id) !== undefined);
  };
  for (;;) {
    for (const call of decided()) {
      taken.add(call.id);
      waiting.push(call);
    }
    for (let free = Math.min(MAX_PARALLEL_CALLS - busy, waiting.length); free > 0; free -= 1) {
      busy += 1;
      void lane()
        .catch((error: unknown) => faults.push(error))
        .finally(() => (busy -= 1));
    }
    if (busy === 0) break;
    const before = busy;
    await condition(() => busy < before || decided().length > 0);
  }
  if (faults.length > 0) throw faults[0];
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
  // As it is now: a person may have changed the arguments while it waited.
  const call = openCallById(run.state, id);
  if (call === undefined) return Promise.resolve();
  const tool = findTool(run.state, call.name);
  // A call of an unknown tool has its result when the batch opens.
  if (tool === undefined) throw new Error(`no tool "${call.name}"`);
  return tool.kind === 'agent'
    ? executeAgentCall(run, { call, tool })
    : executeToolCall(run, { call, tool });
}
