import { type Resolution, refusal, type CallResult } from './call-result.js';
import type { ToolCall } from '../transcript/messages.js';
import type { SafetyPending } from '../status.js';
import { callSummary, visible } from '../text/summaries.js';

/** Returns the message for people about a call with safety checks; the projection makes the same one. */
export function safetyMessage(call: ToolCall): string {
  const checks = (call.safety ?? []).map(({ code, message, id }) => {
    const words = [code, message].filter((word) => word !== undefined && word !== '');
    return visible(words.length === 0 ? id : words.join(': '));
  });
  return (
    `the provider asks for a person's decision before this is done: ${callSummary(call)} ` +
    `(${checks.join('; ')}); resolve it: ${safetyFix('RUN', call)}`
  );
}

/** Returns the pending decision about a call with safety checks. `run`: the run's id in the command. */
export function safetyPending(call: ToolCall, run: string): SafetyPending {
  return {
    type: 'safety_check',
    call: call.id,
    tool: call.name,
    arguments: call.arguments,
    checks: call.safety ?? [],
    fix: safetyFix(run, call),
  };
}

function safetyFix(run: string, { id }: ToolCall): string {
  return `perdure resolve ${run} ${id} --as retry|abandon`;
}

/** Returns the result of a call that a person rejects; null if the person acknowledges the checks. */
export function safetyResult(call: ToolCall, { as }: Resolution): CallResult | null {
  if (as === 'retry') return null;
  return refusal(call.id, {
    type: 'abandoned',
    message:
      'not executed: the provider asked for the decision of a person, who decided against it',
  });
}
