import type { RunToolInput } from '../activities/contract.js';
import { resolvedCall, succeededCall } from '../core/call-results.js';
import type { CallResult } from '../core/calls.js';
import type { ToolDefinition } from '../core/definition.js';
import { callSummary } from '../core/summaries.js';
import { functionActivity } from './activities.js';
import { askPerson } from './ask-person.js';
import { inFlight, type Session } from './session.js';

type Settled =
  | { readonly type: 'settled'; readonly result: CallResult }
  | { readonly type: 'retry' }
  | { readonly type: 'cancelled' };

interface Unknown {
  readonly tool: ToolDefinition;
  readonly input: RunToolInput;
  readonly message: string;
}

/**
 * Nobody knows whether a `once` tool took effect: its `verify` decides where it has one, else the
 * run waits for a person. No result is ever invented.
 */
export async function settleUnknown(session: Session, unknown: Unknown): Promise<Settled> {
  try {
    const verified = unknown.tool.verify ? await verify(session, unknown) : null;
    return verified ?? (await decided(session, unknown));
  } catch (error) {
    if (session.interruption !== null) return { type: 'cancelled' };
    throw error;
  }
}

async function verify(session: Session, { tool, input }: Unknown): Promise<Settled | null> {
  const { call } = input;
  const activity = functionActivity(tool, `verify ${callSummary(call)}`);
  const found = await inFlight(session, () => activity({ ...input, function: 'verify' })).catch(
    (error: unknown) => {
      if (session.interruption !== null) throw error;
      return null;
    },
  );
  if (found === null || found.happened === 'unknown') return null;
  if (!found.happened) return { type: 'retry' };
  const { result } = found;
  return result.ok === true ? { type: 'settled', result: succeededCall(call, tool, result) } : null;
}

async function decided(session: Session, { tool, input, message }: Unknown): Promise<Settled> {
  const { call, key } = input;
  const id = call.id;
  const cure = `perdure resolve RUN ${id} --as happened|retry|abandon [--result JSON]`;
  const resolution = await askPerson(session, {
    pending: {
      type: 'outcome_unknown',
      call: id,
      tool: tool.name,
      arguments: call.arguments,
      idempotencyKey: key,
      cure,
    },
    blocked: { reason: 'outcome_unknown', message: `${message}; settle it: ${cure}` },
  });
  const result = resolvedCall(call, tool, resolution);
  return result === null ? { type: 'retry' } : { type: 'settled', result };
}
