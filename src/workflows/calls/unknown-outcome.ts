import type { RunToolInput } from '../../core/contract.js';
import { resolvedCall, succeededCall } from '../../core/calls/call-results.js';
import type { CallResult } from '../../core/calls/calls.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import { isFunctionResult } from '../../core/guards/recorded.js';
import { callSummary } from '../../core/text/summaries.js';
import { functionActivity } from '../activities.js';
import { askPerson } from './ask-person.js';
import { mendInPlace } from '../blocking.js';
import { inFlight, type Session } from '../run-context.js';
import { LEFT } from '../standing.js';

type Settled =
  | { readonly type: 'settled'; readonly result: CallResult }
  | { readonly type: 'retry' }
  | { readonly type: 'cancelled' }
  | { readonly type: 'left' };

interface Unknown {
  readonly tool: ToolDefinition;
  readonly input: RunToolInput;
  readonly message: string;
  /** A segment before this one has asked already: it is not looked up again. */
  readonly asked?: boolean;
}

/**
 * Nobody knows whether a `once` tool took effect: its `verify` decides where it has one, else the
 * run waits for a person. No result is ever invented.
 */
export async function settleUnknown(session: Session, unknown: Unknown): Promise<Settled> {
  try {
    const verifies = unknown.tool.verify && unknown.asked !== true;
    const verified = verifies ? await verify(session, unknown) : null;
    return verified ?? (await decided(session, unknown));
  } catch (error) {
    if (session.interruption !== null) return { type: 'cancelled' };
    throw error;
  }
}

async function verify(session: Session, { tool, input }: Unknown): Promise<Settled | null> {
  const { call } = input;
  const { resumes } = session;
  const activity = functionActivity(tool, `verify ${callSummary(call)}`);
  const ask = () => activity({ ...input, function: 'verify' });
  const work = { name: call.id, reasons: ['storage'], breakable: true, attempt: ask } as const;
  const found = await inFlight(session, ask)
    .catch((error: unknown) => mendInPlace(session, work, { error, resumes }))
    .catch((error: unknown) => {
      if (session.interruption !== null) throw error;
      return null;
    });
  if (!isFunctionResult(found) || found.happened === 'unknown') return null;
  if (!found.happened) return { type: 'retry' };
  const { result } = found;
  return result.ok === true ? { type: 'settled', result: succeededCall(call, tool, result) } : null;
}

async function decided(
  session: Session,
  { tool, input, message, asked }: Unknown,
): Promise<Settled> {
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
    blocked: {
      reason: 'outcome_unknown',
      message: asked ? message : `${message}; settle it: ${cure}`,
    },
  });
  if (resolution === LEFT) return { type: 'left' };
  const result = resolvedCall(call, tool, resolution);
  return result === null ? { type: 'retry' } : { type: 'settled', result };
}
