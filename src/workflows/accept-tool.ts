import type { Resolution } from '../core/calls/call-results.js';
import { apply } from '../core/loop.js';
import { refusal } from './problem.js';
import { tryAgain, type Session } from './run-context.js';

/** A decision about a tool that has changed is one about the very form that was shown. */
export function refuseAcceptance(session: Session, { call, definition }: Resolution): void {
  const offered = session.blocked.get(call)?.definition;
  if (offered === undefined) {
    const waiting = [...session.blocked].flatMap(([id, block]) => (block.definition ? [id] : []));
    const known = waiting.length === 0 ? 'none does' : `there are ${waiting.join(', ')}`;
    throw refusal(`call: ${JSON.stringify(call)} does not wait for a changed tool; ${known}`);
  }
  if (definition === offered) return;
  throw refusal(
    `definition: ${JSON.stringify(definition ?? null)} is not what the tool is now; look at the run again, it is "${offered}"`,
  );
}

/** Every call of the tool is made in this form from now on; if it changes once more, that blocks again. */
export function acceptTool(session: Session, { call, definition = '' }: Resolution): void {
  const asked = session.state.turn.batch?.calls.find(({ id }) => id === call);
  if (asked !== undefined) {
    apply(session, { type: 'tool-accepted', tool: asked.name, definition });
  }
  tryAgain(session);
  session.changed();
}
