import { findTool } from '../calls/batch.js';
import { askRequest, nextAsk } from '../requests/server-ask.js';
import type { RunToolResult } from '../guards/recorded.js';
import type { RunEvent } from '../run/events.js';
import type { RunState } from '../state/state.js';
import { type AskingWork, type CallWork, callOfWork } from '../state/work.js';
import type { AskedByServer, ServerAnswer } from '../transcript/request.js';
import { unblocked } from './block.js';

/** Maximum results of one call that ask, so that a server cannot ask people forever. */
export const MAX_ROUNDS = 10;
const FIRST_PAUSE_MS = 1_000;

/** Work on a call whose server has asked. */
type Asked = CallWork & { readonly asked: AskedByServer };

/**
 * Returns the events when a server asks before it executes a call: the first request, or, if nobody
 * can be asked, the next attempt with `cancel` as each answer. Null if it has asked too often.
 */
export function serverAsked(
  state: RunState,
  work: CallWork,
  { asks, state: kept }: Extract<RunToolResult, { ok: 'input_required' }>,
  at: number,
): readonly RunEvent[] | null {
  const rounds = (work.asked?.rounds ?? 0) + 1;
  if (rounds > MAX_ROUNDS) return null;
  const isUnattended = state.unattended === 'deny';
  const asked: AskedByServer = {
    asks,
    answers: isUnattended ? asks.map(() => ({ action: 'cancel' })) : [],
    ...(kept !== undefined && { state: kept }),
    rounds,
  };
  // The server has executed nothing, so nothing of the attempt counts.
  const { name, approved, grant, retried } = work;
  const next: Asked = {
    name,
    ...(approved && { approved }),
    ...(grant !== undefined && { grant }),
    ...(retried && { retried }),
    asked,
    // A server that asks nothing wants the same call later.
    ...(asks.length === 0 && { startAt: at + FIRST_PAUSE_MS * 2 ** (rounds - 1) }),
    phase: 'waiting',
  };
  return [{ type: 'work-changed', work: next }, ...nextRequest(state, next, at)];
}

/** Returns the events of an answer to a server: the next request, or the next attempt of the call. */
export function serverAnswered(
  state: RunState,
  work: AskingWork & Asked,
  answer: ServerAnswer,
  at: number,
): readonly RunEvent[] {
  const { asked } = work;
  const next = { ...unblocked(work), asked: { ...asked, answers: [...asked.answers, answer] } };
  return [{ type: 'work-changed', work: next }, ...nextRequest(state, next, at)];
}

/** Whether a request is a server's. */
export function isServerAsk(work: AskingWork): work is AskingWork & Asked {
  return work.asked !== undefined && work.request.kind === 'question';
}

/** Only who may decide about the call may answer what its server asks. */
function nextRequest(state: RunState, { name, asked }: Asked, at: number): readonly RunEvent[] {
  const call = callOfWork(state, name);
  const tool = call && findTool(state, call.name);
  if (tool === undefined || nextAsk(asked) === undefined) return [];
  const deciders = call?.verdict?.deciders;
  const request = askRequest(asked, { tool, at, ...(deciders && { deciders }) });
  return [{ type: 'request-raised', work: name, request }];
}
