import { cancelledCall, type CallResult } from '../calls/call-result.js';
import { childResult, type ChildEnd } from '../calls/child.js';
import { findTool } from '../calls/batch.js';
import type { RunEvent } from '../events.js';
import { toWork, type FactOf } from '../facts.js';
import { isFollowResult } from '../guards/recorded.js';
import { getInterruption } from '../work/interruption.js';
import type { RunState } from '../state.js';
import { openCallById } from '../turn.js';
import { findWork, type Work } from '../work/work.js';
import { STORAGE_LOST } from '../report.js';
import type { ToolCall } from '../transcript/messages.js';
import { finishCall, lossEvents } from './calls.js';

/** Returns the events of a called agent's ended run. */
export function childEnded(
  state: RunState,
  { call, outcome, message, at }: FactOf<'child-ended'>,
): readonly RunEvent[] {
  return agentCallEnded(state, { id: call, end: { outcome, message }, at });
}

/** Returns the events when a run with the agent's id already exists: it is followed next. */
export function childExisted(
  state: RunState,
  { call }: FactOf<'child-existed'>,
): readonly RunEvent[] {
  const work = findWork(state, call);
  return work === undefined ? [] : [{ type: 'work-changed', work: { ...work, phase: 'waiting' } }];
}

/**
 * Returns the events after an activity followed an existing run. Without an outcome, the agent runs
 * again.
 */
export function followed(
  state: RunState,
  { task, result, at }: FactOf<'completed'>,
): readonly RunEvent[] {
  const id = toWork(task)?.name ?? '';
  const work = findWork(state, id);
  if (work === undefined || !isFollowResult(result)) return [];
  switch (result.type) {
    case 'ended':
      return agentCallEnded(state, { id, end: { outcome: result.outcome, message: '' }, at });
    case 'lost':
      return [{ type: 'work-changed', work: { ...work, again: true, phase: 'waiting' } }];
    case 'other': {
      if (!result.running) {
        return [{ type: 'work-changed', work: { ...work, phase: 'waiting' } }];
      }
      const end = { outcome: null, message: 'Workflow execution already started' };
      return agentCallEnded(state, { id, end, at });
    }
  }
}

/** Returns the events when a called agent's run cannot be followed: its call fails. */
export function followFailed(
  state: RunState,
  {
    task,
    failure,
    at,
  }: Pick<FactOf<'failed'>, 'task' | 'at'> & { readonly failure: { readonly message: string } },
): readonly RunEvent[] {
  const end = { outcome: null, message: failure.message };
  return agentCallEnded(state, { id: toWork(task)?.name ?? '', end, at });
}

/** Returns the events of a called agent's losses, which are also losses of its caller. */
function lossesOf({ name }: ToolCall, { outcome }: ChildEnd, at: number): readonly RunEvent[] {
  const { lost = [] } = outcome ?? {};
  const of = { type: STORAGE_LOST, attempt: 1, waitMs: 0, at };
  const reports = lost.map((message) => ({ ...of, message: `agent ${name}: ${message}` }));
  return lossEvents(reports.length > 0 ? { reports } : {});
}

function agentCallEnded(
  state: RunState,
  { id, end, at }: { readonly id: string; readonly end: ChildEnd; readonly at: number },
): readonly RunEvent[] {
  const call = openCallById(state, id);
  const tool = call && findTool(state, call.name);
  const work = findWork(state, id);
  if (!call || !tool || work === undefined) return [];
  const result = childResult(call, end);
  const status = end.outcome?.status;
  const counts = getInterruption(state) === null || status === 'completed' || status === 'stopped';
  const lost = lossesOf(call, end, at);
  if (counts) return [...lost, ...recordConversation(work, end), ...finishCall(result, at)];
  const { usage } = result;
  const canceled: CallResult = { ...cancelledCall(call, tool), ...(usage && { usage }) };
  return finishCall(canceled, at);
}

/**
 * Returns the event that records the conversation for the node's next visit. A failed one is not
 * continued.
 */
function recordConversation({ child }: Work, { outcome }: ChildEnd): readonly RunEvent[] {
  const isGood = outcome?.status === 'completed' || outcome?.status === 'stopped';
  return child === undefined || !isGood ? [] : [{ type: 'conversation-recorded', run: child }];
}
