import { isCancellation, sleep } from '@temporalio/workflow';
import type { RunToolInput, RunToolResult } from '../activities/contract.js';
import { notExecuted } from '../core/batch.js';
import { TOOL_BLOCKS, type ToolBlock } from '../core/blocked.js';
import {
  cancelledCall,
  failedCall,
  lostCall,
  lostMessage,
  refusedCall,
  succeededCall,
} from '../core/call-results.js';
import type { CallResult } from '../core/calls.js';
import type { ToolDefinition } from '../core/definition.js';
import type { ToolCall } from '../core/messages.js';
import { callSummary } from '../core/summaries.js';
import { toolActivity } from './activities.js';
import { mend } from './blocking.js';
import { isLost, messageOf } from './problem.js';
import { inFlight, type Session } from './session.js';
import { settleUnknown } from './unknown-outcome.js';

/** A `once` tool has one attempt; what fails before it is entered is scheduled again, this often. */
const STARTS = 8;
const FIRST_PAUSE_MS = 1_000;

interface Work {
  readonly tool: ToolDefinition;
  readonly input: RunToolInput;
}

/** Executes one call to its one result. Never rejects for what a tool, a worker or a person does. */
export async function executeCall(session: Session, work: Work): Promise<CallResult> {
  const { tool, input } = work;
  const { call } = input;
  for (let starts = 1; ; starts += 1) {
    const end = await attempt(session, work);
    switch (end.type) {
      case 'result':
        return end.result;
      case 'not_started':
        if (starts >= STARTS) return notExecuted(call, end.message);
        if (!(await pause(session, FIRST_PAUSE_MS * 2 ** (starts - 1)))) {
          return notExecuted(call, 'the run was broken off before it');
        }
        break;
      case 'unknown': {
        const settled = await settleUnknown(session, { ...work, message: end.message });
        if (settled.type === 'settled') return settled.result;
        if (settled.type === 'cancelled') return cancelledCall(call, tool);
      }
    }
  }
}

type AttemptEnd =
  | { readonly type: 'result'; readonly result: CallResult }
  | { readonly type: 'unknown' | 'not_started'; readonly message: string };

async function attempt(session: Session, { tool, input }: Work): Promise<AttemptEnd> {
  const { call } = input;
  const activity = toolActivity(tool, callSummary(call));
  const { resumes } = session;
  try {
    return endOf(await inFlight(session, () => activity(withAccepted(session, input))), {
      call,
      tool,
    });
  } catch (error) {
    const work = {
      name: call.id,
      reasons: TOOL_BLOCKS,
      // A probe may have begun to execute; breaking it off for `resume` would make its outcome unknown.
      breakable: tool.effect !== 'once',
      attempt: (blocked: ToolBlock | undefined) =>
        activity({ ...withAccepted(session, input), ...(blocked !== undefined && { blocked }) }),
    };
    return await mend(session, work, { error, resumes }).then(
      (result) => endOf(result, { call, tool }),
      (failure: unknown) => failureEnd(session, { call, tool }, failure),
    );
  }
}

/** What a person accepts while the call waits holds for its next attempt. */
function withAccepted({ state }: Session, input: RunToolInput): RunToolInput {
  const accepted = state.accepted?.[input.call.name];
  return accepted === undefined ? input : { ...input, accepted };
}

function failureEnd(
  session: Session,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
  error: unknown,
): AttemptEnd {
  if (session.interruption !== null && isCancellation(error)) {
    return ended(cancelledCall(call, tool));
  }
  const message = lostMessage(tool.name, messageOf(error));
  // The worker reports whatever it can tell as data, so a failure here means that nobody can.
  if (tool.effect === 'once') return { type: 'unknown', message };
  return ended(
    isLost(error)
      ? lostCall(call, message)
      : failedCall(call, { type: 'tool_error', message: messageOf(error) }),
  );
}

function endOf(
  result: RunToolResult,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): AttemptEnd {
  switch (result.ok) {
    case true:
      return ended(succeededCall(call, tool, result));
    case false:
      return ended(refusedCall(call, result.text));
    case 'unknown':
    case 'not_started':
      return { type: result.ok, message: result.message };
  }
}

function ended(result: CallResult): AttemptEnd {
  return { type: 'result', result };
}

/** @returns false when the work was broken off meanwhile */
async function pause(session: Session, ms: number): Promise<boolean> {
  try {
    await inFlight(session, () => sleep(ms));
    return true;
  } catch {
    return false;
  }
}
