import { findTool, inlineCalls } from '../calls/batch.js';
import type { RunReadsResult } from '../guards/recorded.js';
import type { Completed, RunEvent, Task } from '../run/events.js';
import type { RunState } from '../state/state.js';
import type { ToolCall } from '../transcript/messages.js';
import { resultEvents } from './calls.js';

/** The local activity of inline calls. The history has only its result. */
export const INLINE: Task = { activity: 'runReads', input: {} };

/**
 * Returns the events of calls that a workflow task has executed itself. A call without a result
 * begins its work, so an activity executes it next. After a call that took too long, the calls of its
 * tool are activities until the end of the segment.
 */
export function readsReturned(
  state: RunState,
  { result: { reads }, at }: Completed<RunReadsResult>,
): readonly RunEvent[] {
  const calls = inlineCalls(state);
  const slow = calls.filter(({ id }) =>
    reads.some(({ call, why }) => call === id && why === 'slow'),
  );
  return [
    ...stopped(slow),
    ...calls.flatMap((call): readonly RunEvent[] => {
      const tool = findTool(state, call.name);
      const { result, why } = reads.find((one) => one.call === call.id) ?? {};
      if (result === undefined || tool === undefined) return [handedOver(call, why === 'threw')];
      const work = { name: call.id, phase: 'waiting' } as const;
      return resultEvents(state, { call, tool, work, key: '' }, { result, at });
    }),
  ];
}

/** Returns the events of calls that the worker could not execute inline: activities execute them. */
export function readsFailed(state: RunState): readonly RunEvent[] {
  const calls = inlineCalls(state);
  return [...stopped(calls), ...calls.map((call) => handedOver(call, false))];
}

function handedOver({ id: name }: ToolCall, threw: boolean): RunEvent {
  const work = { name, ...(threw && { tries: 1 }), phase: 'waiting' } as const;
  return { type: 'work-changed', work };
}

function stopped(calls: readonly ToolCall[]): readonly RunEvent[] {
  if (calls.length === 0) return [];
  return [{ type: 'inline-stopped', tools: [...new Set(calls.map(({ name }) => name))] }];
}
