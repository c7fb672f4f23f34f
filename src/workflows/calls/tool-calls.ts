import type { RunToolInput } from '../../core/contract.js';
import { toolOf } from '../../core/calls/batch.js';
import { failedCall } from '../../core/calls/call-results.js';
import type { CallResult } from '../../core/calls/calls.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import type { Interruption } from '../../core/events.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { callArtifacts } from '../../core/artifacts/named-artifacts.js';
import type { RunState } from '../../core/state.js';
import { callSummary } from '../../core/text/summaries.js';
import { callKey } from './call-key.js';
import { runChild } from './child-run.js';
import { executeCall } from './execute-call.js';
import { takeInterruption, type Session, inFlight } from '../run-context.js';
import { LEFT, takeUp, type Left, type LeftWork } from '../standing.js';
import { condition } from '@temporalio/workflow';
import { safetyMessage, safetyPending, settledSafety } from '../../core/calls/safety.js';
import { askPerson } from './ask-person.js';

const AT_ONCE = 5;

/** The loop's `runCalls`: the first five are scheduled in one workflow task, the next as one ends. */
export async function runCalls(
  session: Session,
  state: RunState,
  {
    calls,
    finished,
  }: { readonly calls: readonly ToolCall[]; readonly finished: (result: CallResult) => void },
): Promise<Interruption | null> {
  const waiting = [...calls];
  const lane = async (): Promise<void> => {
    for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) {
      // Nothing new is started once the work is broken off or paused; the reducer knows what is left.
      if (session.interruption !== null || session.state.paused) return;
      const left = takeUp(session, call.id);
      // Blocked by anything else, it was acknowledged before.
      if (call.safety !== undefined && (left === undefined || left.reason === 'safety_check')) {
        const passed = await passSafety(session, call);
        if (passed.type === 'broken_off' || passed.type === 'left') return;
        if (passed.type === 'refused') {
          finished(passed.result);
          continue;
        }
      }
      const result = await runCall(session, state, { call, left });
      // The segment is full: what has not begun begins in the next one.
      if (result === LEFT) return;
      finished(result);
    }
  };
  if (calls.length === 1) await lane();
  else await Promise.all(Array.from({ length: Math.min(AT_ONCE, calls.length) }, lane));
  return takeInterruption(session);
}

async function runCall(
  session: Session,
  state: RunState,
  { call, left }: { readonly call: ToolCall; readonly left: LeftWork | undefined },
): Promise<CallResult | Left> {
  const tool = toolOf(state, call.name);
  if (tool === undefined) {
    return failedCall(call, { type: 'unknown_tool', message: `no tool "${call.name}"` });
  }
  session.doing.set(call.id, callSummary(call));
  session.changed();
  try {
    if (tool.kind === 'agent') return await runChild(session, state, { call, tool });
    const input = toolInput(session, state, { call, tool });
    return await executeCall(session, { tool, input }, left);
  } finally {
    session.doing.delete(call.id);
  }
}

function toolInput(
  session: Session,
  state: RunState,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): RunToolInput {
  const { definition, contextBlob } = state.config;
  const turn = state.turn.number;
  const step = state.turn.batch?.step ?? state.turn.spent.steps;
  const { context } = session.input;
  const artifacts = callArtifacts(state, call, tool);
  return {
    definition: definition.hash,
    turn,
    step,
    call,
    effect: tool.effect,
    key: callKey(session.input, state, call),
    ...(contextBlob ? { contextBlob } : context !== undefined && { context }),
    ...(artifacts && { artifacts }),
    ...(session.input.called?.again && tool.effect === 'once' && { again: true as const }),
  };
}

type Passed =
  | { readonly type: 'acknowledged' }
  | { readonly type: 'refused'; readonly result: CallResult }
  /** Nobody has decided, and nothing was done: the work was broken off, or left to a new segment. */
  | { readonly type: 'broken_off' | 'left' };

/** A call that its provider wants looked at waits for a person. No engine ever acknowledges anything. */
async function passSafety(session: Session, call: ToolCall): Promise<Passed> {
  try {
    const resolution = await askPerson(session, {
      pending: safetyPending(call, 'RUN'),
      blocked: { reason: 'safety_check', message: safetyMessage(call) },
    });
    if (resolution === LEFT) return { type: 'left' };
    const result = settledSafety(call, resolution);
    if (result !== null) return { type: 'refused', result };
    if (session.state.paused) await inFlight(session, () => condition(() => !session.state.paused));
    return { type: 'acknowledged' };
  } catch (error) {
    if (session.interruption !== null) return { type: 'broken_off' };
    throw error;
  }
}
