import { makeContinueAsNewFunc, workflowInfo } from '@temporalio/workflow';
import { byteLength } from '../core/inbox.js';
import { isProblem, type RunInput } from '../core/input/input.js';
import { readForm, SCHEMA } from '../core/segments/migrations.js';
import { reduce } from '../core/reduce.js';
import type { Standing } from '../core/standing.js';
import { initialState, type RunState } from '../core/state.js';
import { hasOwnHash, unloadedConfig } from '../core/definition/initial-config.js';
import type { agent } from './agent.js';
import { inputFailure } from './load.js';
import type { Session } from './run-context.js';
import { standingOf } from './standing.js';

/** An input over 2 MiB is refused by the server again and again. */
const MOST_BYTES = 1.5 * 1024 * 1024;
const SPARED_IDS = 100;

/** What a segment hands to the next one. Field names are recorded in histories: they are for ever. */
export interface Carried {
  readonly schema: number;
  readonly state: RunState;
  /** The status that the search attributes show already. */
  readonly shown: string;
  /** Blocked work, which goes on blocked in the next segment; absent where nothing is blocked. */
  readonly blocked?: readonly Standing[];
}

/** The state of a run that has heard its first message, if it was started with one, and loaded nothing yet. */
export function firstState(input: RunInput): RunState {
  const { open = false, message: text, attachments } = input;
  const state = initialState(unloadedConfig(input.agent), { open, startedAt: Date.now() });
  if (text === undefined) return state;
  const message = { id: '', text, turn: 1, ...(attachments && { attachments }) };
  return reduce(state, { type: 'message-received', message });
}

/**
 * Returns what the segment before has handed over; null in a run's first one. Throws the failure of a
 * run for a state that its starter gave, and for one that is malformed.
 *
 * A workflow of another type that continues as new into this one passes this check, as the server
 * does not say who wrote the state. It has to be complete, and its definition cannot borrow the hash
 * of a registered one.
 */
export function readCarried(value: unknown): Carried | null {
  if (value === undefined || value === null) return null;
  if (workflowInfo().continuedFromExecutionRunId === undefined) {
    throw inputFailure(
      'carried: expected no second argument; only the run itself passes its state',
    );
  }
  const read = readForm(value);
  if (isProblem(read)) throw inputFailure(read.problem);
  if (!hasOwnHash(read.form.state)) {
    throw inputFailure('carried.state.config.definition.hash: expected that of the definition');
  }
  return read.form;
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
  const blocked = standingOf(session);
  for (const each of [state, spared(state)]) {
    const carried: Carried = {
      schema: SCHEMA,
      state: each,
      shown: session.shown,
      ...(blocked.length > 0 && { blocked }),
    };
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
