import { isCancellation, sleep } from '@temporalio/workflow';
import type { RunToolInput, RunToolResult } from '../../core/contract.js';
import { notExecuted } from '../../core/calls/batch.js';
import { TOOL_BLOCKS, type ToolBlock } from '../../core/blocked.js';
import {
  cancelledCall,
  failedCall,
  lostCall,
  lostMessage,
  refusedCall,
  succeededCall,
} from '../../core/calls/call-results.js';
import type { CallResult } from '../../core/calls/calls.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { isToolResult } from '../../core/guards/recorded.js';
import { callSummary } from '../../core/text/summaries.js';
import { findActivity, toolActivity } from '../activities.js';
import { mend, type BlockedAt } from '../blocking.js';
import { isLost, messageOf } from '../problem.js';
import { fitting } from './recorded-result.js';
import { inFlight, type Session } from '../run-context.js';
import { LEFT, type Left, type LeftWork } from '../standing.js';
import { settleUnknown } from './unknown-outcome.js';

/** A `once` tool has one attempt; what fails before it is entered is scheduled again, this often. */
const STARTS = 8;
const FIRST_PAUSE_MS = 1_000;

interface Work {
  readonly tool: ToolDefinition;
  readonly input: RunToolInput;
}

/**
 * Executes one call to its one result; `left`: what a segment has left blocked, to go on there. Never
 * rejects for what a tool, a worker or a person does.
 */
export async function executeCall(
  session: Session,
  work: Work,
  left?: LeftWork,
): Promise<CallResult | Left> {
  const { tool, input } = work;
  const { call } = input;
  let current = work;
  let stood = left;
  for (let starts = 1; ; starts += 1) {
    const end = await attempt(session, current, stood);
    const asked = stood?.reason === 'outcome_unknown';
    stood = undefined;
    switch (end.type) {
      case 'left':
        return LEFT;
      case 'result':
        return end.result;
      case 'not_started':
        if (starts >= STARTS) return notExecuted(call, end.message);
        if (!(await pause(session, FIRST_PAUSE_MS * 2 ** (starts - 1)))) {
          return notExecuted(call, 'the run was broken off before it');
        }
        break;
      case 'unknown': {
        const settled = await settleUnknown(session, { ...work, message: end.message, asked });
        if (settled.type === 'left') return LEFT;
        if (settled.type === 'settled') return settled.result;
        if (settled.type === 'cancelled') return cancelledCall(call, tool);
        const { again: _, ...decided } = input;
        current = { tool, input: decided };
      }
    }
  }
}

type AttemptEnd =
  | { readonly type: 'left' }
  | { readonly type: 'result'; readonly result: CallResult }
  | { readonly type: 'unknown' | 'not_started'; readonly message: string };

async function attempt(session: Session, work: Work, stood?: LeftWork): Promise<AttemptEnd> {
  const { tool, input } = work;
  const { call } = input;
  if (stood?.reason === 'outcome_unknown') return { type: 'unknown', message: stood.message };
  const activity = toolActivity(tool, callSummary(call));
  const { resumes } = session;
  try {
    if (stood !== undefined) return await blockedAttempt(session, work, stood);
    const result = await inFlight(session, () => activity(withAccepted(session, input)));
    return endOf(fitting('runTool', isToolResult, result), { call, tool });
  } catch (error) {
    return await blockedAttempt(session, work, { error, resumes });
  }
}

/** Never rejects. */
async function blockedAttempt(
  session: Session,
  { tool, input }: Work,
  from: BlockedAt,
): Promise<AttemptEnd> {
  const { call } = input;
  const activity = toolActivity(tool, callSummary(call), true);
  const find = findActivity(callSummary(call));
  const work = {
    name: call.id,
    reasons: TOOL_BLOCKS,
    // A probe may have begun to execute; breaking it off for `resume` would make its outcome unknown.
    breakable: tool.effect !== 'once',
    find: async (blocked: ToolBlock) =>
      await find({ ...withAccepted(session, input), blocked, find: true }),
    attempt: async (blocked: ToolBlock | undefined) =>
      fitting(
        'runTool',
        isToolResult,
        await activity({
          ...withAccepted(session, input),
          ...(blocked !== undefined && { blocked }),
        }),
      ),
  };
  return await mend(session, work, from).then(
    (result): AttemptEnd => (result === LEFT ? { type: 'left' } : endOf(result, { call, tool })),
    (failure: unknown) => failureEnd(session, { call, tool }, failure),
  );
}

/** What a person accepts while the call waits holds for its next attempt. */
function withAccepted({ state }: Session, input: RunToolInput): RunToolInput {
  const { accepted = {} } = state;
  const { name } = input.call;
  const form = Object.hasOwn(accepted, name) ? accepted[name] : undefined;
  return form === undefined ? input : { ...input, accepted: form };
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
