import { condition } from '@temporalio/workflow';
import type { CallResult } from '../../core/calls/calls.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { safetyMessage, safetyPending, settledSafety } from '../../core/calls/safety.js';
import { askPerson } from './ask-person.js';
import { inFlight, type Session } from '../run-context.js';
import { LEFT } from '../standing.js';

type Passed =
  | { readonly type: 'acknowledged' }
  | { readonly type: 'refused'; readonly result: CallResult }
  /** Nobody has decided, and nothing was done: the work was broken off, or left to a new segment. */
  | { readonly type: 'broken_off' | 'left' };

/** A call that its provider wants looked at waits for a person. No engine ever acknowledges anything. */
export async function passSafety(session: Session, call: ToolCall): Promise<Passed> {
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
