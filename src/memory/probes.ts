import { defaultPayloadConverter } from '@temporalio/common';
import { isObject } from '../core/text/json.js';
import type { AttributesOf } from './events.js';
import type { Segment } from './segment.js';

/*
 * The probes of blocked work. The server repeats the attempts of one activity, but the workflow itself makes an
 * activity for each probe of a call, and the next one after a timer, as long as the run is blocked. In virtual time,
 * that would go on for a year without a pause.
 */

type Scheduled = AttributesOf<'activityTaskScheduled'>;

/** After this many attempts or probes, only something outside the run can help an activity. */
export const HOPELESS_ATTEMPTS = 20;

/** The number of consecutive failed attempts and probes of each piece of blocked work. */
export type Probes = Map<string, number>;

interface WorkOf {
  /** The same for all attempts at a piece of work. */
  readonly work: string;
  /** Whether it is a probe of a blocked run, or a search for a worker that can do the work. */
  readonly isProbe: boolean;
  readonly isSearch: boolean;
}

function workOf({ workflowId }: Segment, { activityType, input }: Scheduled): WorkOf {
  const [payload] = input?.payloads ?? [];
  const given: unknown = payload ? defaultPayloadConverter.fromPayload(payload) : null;
  const { blocked, find, call, turn, step } = isObject(given) ? given : {};
  const id = isObject(call) ? call['id'] : null;
  const work = [workflowId, activityType?.name, turn, step, id].join(' ');
  const isSearch = find === true;
  return { work, isSearch, isProbe: blocked !== undefined || isSearch };
}

/** Whether a scheduled activity is a probe that is not worth making, after too many that have failed. */
export function isHopelessProbe(probes: Probes, segment: Segment, scheduled: Scheduled): boolean {
  // Nothing is blocked, as in most runs.
  if (probes.size === 0) return false;
  const { work, isProbe } = workOf(segment, scheduled);
  return isProbe && (probes.get(work) ?? 0) >= HOPELESS_ATTEMPTS;
}

/** Notes how an activity ended. */
export function noteEnd(
  probes: Probes,
  { segment, attributes }: { readonly segment: Segment; readonly attributes: Scheduled },
  end: 'completed' | 'failed' | 'timedOut' | 'cancelled',
): void {
  if (end === 'cancelled' || (end === 'completed' && probes.size === 0)) return;
  const { work, isSearch } = workOf(segment, attributes);
  if (end !== 'completed') probes.set(work, (probes.get(work) ?? 0) + 1);
  // What a search has found may fail again.
  else if (!isSearch) probes.delete(work);
}
