import { makeContinueAsNewFunc, workflowInfo } from '@temporalio/workflow';
import { byteLength } from '../core/inbox.js';
import type { RunInput } from '../core/input.js';
import { isObject } from '../core/json.js';
import { migrate, SCHEMA } from '../core/migrations.js';
import { reduce } from '../core/reduce.js';
import { initialState, type RunState } from '../core/state.js';
import { unloadedConfig } from '../core/unloaded.js';
import type { agent } from './agent.js';
import type { Session } from './session.js';

/** An input over 2 MiB is refused by the server again and again. */
const MOST_BYTES = 1.5 * 1024 * 1024;
const SPARED_IDS = 100;

/** What a segment hands to the next one. Field names are recorded in histories: they are for ever. */
export interface Carried {
  readonly schema: number;
  readonly state: RunState;
  /** The status that the search attributes show already. */
  readonly shown: string;
}

/** The state of a run that has heard its first message, if it was started with one, and loaded nothing yet. */
export function firstState(input: RunInput): RunState {
  const { open = false, message: text, attachments } = input;
  const state = initialState(unloadedConfig(input.agent), { open, startedAt: Date.now() });
  if (text === undefined) return state;
  const message = { id: '', text, turn: 1, ...(attachments && { attachments }) };
  return reduce(state, { type: 'message-received', message });
}

/** What the segment before has left; null in a run's first one, whatever its starter may have given. */
export function readCarried(value: unknown): Carried | null {
  // A retry or a cron schedule of Temporal's continues a run too, with nothing but its input.
  if (workflowInfo().continuedFromExecutionRunId === undefined || !isObject(value)) return null;
  return migrate(value);
}

/**
 * What goes over. Where it would be more than an input may be, which hangs a run for ever, it is what
 * can be spared that stays; null where even that is not enough.
 */
export function carry(session: Session): readonly [RunInput, Carried] | null {
  const { message: _, attachments: __, context, ...input } = session.input;
  const kept = session.state.config.contextBlob === undefined && context !== undefined;
  const next: RunInput = { ...input, ...(kept && { context }) };
  const state = reduce(session.state, { type: 'segment-begun' });
  for (const each of [state, spared(state)]) {
    const carried: Carried = { schema: SCHEMA, state: each, shown: session.shown };
    if (byteLength(JSON.stringify([next, carried])) <= MOST_BYTES) return [next, carried];
  }
  return null;
}

/** Without the outcomes of earlier turns, and with fewer ids of messages. */
function spared(state: RunState): RunState {
  const seen = state.inbox.seen.slice(-SPARED_IDS);
  return { ...state, recent: [], inbox: { ...state.inbox, seen } };
}

/** Ends this segment and begins the next; returns only by its exception. */
export async function handOver(
  session: Session,
  [next, carried]: readonly [RunInput, Carried],
): Promise<never> {
  session.state = carried.state;
  // The one place where a pinned run moves to the newest build.
  const move = makeContinueAsNewFunc<typeof agent>({ initialVersioningBehavior: 'AUTO_UPGRADE' });
  return await move(next, carried);
}
