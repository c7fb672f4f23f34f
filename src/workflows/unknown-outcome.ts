import { condition, isCancellation } from '@temporalio/workflow';
import type { RunToolInput } from '../activities/contract.js';
import { errorText, type CallResult } from '../core/calls.js';
import type { ToolDefinition } from '../core/definition.js';
import type { Json } from '../core/json.js';
import type { ToolCall } from '../core/messages.js';
import { callSummary } from '../core/summaries.js';
import { functionActivity } from './activities.js';
import type { Resolution } from './handles.js';
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
    return verified ?? (await askPerson(session, unknown));
  } catch (error) {
    if (session.interruption !== null && isCancellation(error)) return { type: 'cancelled' };
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
  if (result.ok !== true) return null;
  const { text, blob, output } = result;
  return {
    type: 'settled',
    result: {
      id: call.id,
      ok: true,
      text,
      ...(blob && { blob }),
      ...(tool.ends && { output: output ?? text }),
      executed: true,
    },
  };
}

async function askPerson(session: Session, { tool, input, message }: Unknown): Promise<Settled> {
  const { call, key } = input;
  const id = call.id;
  const cure = `perdure resolve RUN ${id} --as happened|retry|abandon [--result JSON]`;
  session.pending.set(id, {
    type: 'outcome_unknown',
    call: id,
    tool: tool.name,
    arguments: call.arguments,
    idempotencyKey: key,
    cure,
  });
  session.blocked.set(id, { reason: 'outcome_unknown', message: `${message}; settle it: ${cure}` });
  session.changed();
  try {
    await inFlight(session, () => condition(() => session.resolutions.has(id)));
  } finally {
    session.pending.delete(id);
    session.blocked.delete(id);
    session.changed();
  }
  const resolution = session.resolutions.get(id);
  session.resolutions.delete(id);
  return resolution === undefined ? { type: 'retry' } : settledBy(resolution, call, tool);
}

function settledBy(resolution: Resolution, call: ToolCall, tool: ToolDefinition): Settled {
  switch (resolution.as) {
    case 'retry':
      return { type: 'retry' };
    case 'happened': {
      const text = asText(resolution.result);
      const output = tool.ends && { output: resolution.result ?? text };
      return {
        type: 'settled',
        result: { id: call.id, ok: true, text, ...output, executed: true },
      };
    }
    case 'abandon': {
      const error = {
        type: 'abandoned',
        message: 'whether this took effect is unknown; a person decided to give it up',
      } as const;
      const text = errorText(error);
      return { type: 'settled', result: { id: call.id, ok: false, text, executed: true } };
    }
  }
}

function asText(result: Json | undefined): string {
  if (result === undefined)
    return 'It happened, as a person confirmed; there is no result to show.';
  return typeof result === 'string' ? result : JSON.stringify(result);
}
