import { type Resolution, refusal, type CallResult } from './call-result.js';
import type { ToolCall } from '../transcript/messages.js';
import type { SafetyPending } from '../status.js';
import { callSummary, visible } from '../text/summaries.js';

/** What the workflow and every reader of its history say of a call that a person has to look at. */
export function safetyMessage(call: ToolCall): string {
  const checks = (call.safety ?? []).map(({ code, message, id }) => {
    const words = [code, message].filter((word) => word !== undefined && word !== '');
    return visible(words.length === 0 ? id : words.join(': '));
  });
  return (
    `the provider wants a person to look before this is done: ${callSummary(call)} ` +
    `(${checks.join('; ')}); settle it: ${safetyCure('RUN', call)}`
  );
}

export function safetyPending(call: ToolCall, run: string): SafetyPending {
  return {
    type: 'safety_check',
    call: call.id,
    tool: call.name,
    arguments: call.arguments,
    checks: call.safety ?? [],
    cure: safetyCure(run, call),
  };
}

function safetyCure(run: string, { id }: ToolCall): string {
  return `perdure resolve ${run} ${id} --as retry|abandon`;
}

/** @returns null for `retry`: a person acknowledges the checks, and the call is executed */
export function safetyResult(call: ToolCall, { as }: Resolution): CallResult | null {
  if (as === 'retry') return null;
  return refusal(call.id, {
    type: 'abandoned',
    message:
      'not executed: the provider wanted a person to look at it first, and the person decided against it',
  });
}
