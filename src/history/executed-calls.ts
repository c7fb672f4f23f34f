import { parseProblem } from '../core/interpret/block.js';
import { nodeOfCall } from '../core/state/turn-definition.js';
import { isObject } from '../core/text/json.js';
import { failureOf } from '../core/transcript/call-result.js';
import { isCall } from '../core/transcript/message-shapes.js';
import type { ToolCall } from '../core/transcript/messages.js';
import type { HistoryEvent } from './history-event.js';
import type { EventOf } from './projection.js';

/** A tool with a side effect was executed, or may have been. `ok`: null if that is unknown. */
export interface ExecutedCall extends ExecutedFunction {
  readonly ok: boolean | null;
}

/** What was executed: a call, or the `undo` of a call that had succeeded. */
interface ExecutedFunction {
  readonly call: ToolCall;
  readonly effect: string;
  readonly undo?: true;
}

/** A call that a worker was given to execute. */
interface BegunCall extends ExecutedFunction {
  /** The newest attempt of its activity, from 1. */
  readonly attempt: number;
}

/**
 * What the end of an activity shows: whether the tool succeeded, or null if that is unknown. `none`:
 * it was not executed. `open`: it may have been, and the run goes on with the call.
 */
type Shown = boolean | null | 'none' | 'open';

/**
 * Returns a function that takes the events of all segments of a run in order, and returns the calls of
 * which an event shows that they were executed, or that it will never be known. An activity that only
 * checks a call, or that ends before the tool begins, executes nothing.
 */
export function followExecutions(): (event: HistoryEvent) => readonly ExecutedCall[] {
  /** The activities in flight, by the id of the event that scheduled them. */
  const inFlight = new Map<number, BegunCall>();
  /** The calls that may have been executed, until a later attempt shows it, by their ids. */
  const open = new Map<string, BegunCall>();
  const endAll = (isContinued: boolean): readonly ExecutedCall[] => {
    for (const begun of inFlight.values()) open.set(nameOf(begun), begun);
    inFlight.clear();
    if (isContinued) return [];
    const rest = [...open.values()].map((begun) => {
      const { attempt: _, ...one } = begun;
      return { ...one, ok: null };
    });
    open.clear();
    return rest;
  };
  const endOne = (event: EndEvent): readonly ExecutedCall[] => {
    const begun = inFlight.get(event.scheduled);
    if (begun === undefined) return [];
    inFlight.delete(event.scheduled);
    const { attempt: _, ...one } = begun;
    const shown = shownBy(begun, event);
    if (shown === 'open') open.set(nameOf(begun), begun);
    if (shown === 'open' || shown === 'none') return [];
    open.delete(nameOf(begun));
    return [{ ...one, ok: shown }];
  };
  return (event) => {
    switch (event.type) {
      case 'started':
        // The end of an archived segment may be lost.
        inFlight.clear();
        return [];
      case 'scheduled': {
        const begun = begunCall(event);
        if (begun !== null) inFlight.set(event.id, begun);
        return [];
      }
      case 'attempted': {
        const begun = inFlight.get(event.scheduled);
        if (begun !== undefined)
          inFlight.set(event.scheduled, { ...begun, attempt: event.attempt });
        return [];
      }
      case 'completed':
      case 'failed':
      case 'cancelled':
        return endOne(event);
      case 'ended':
        return endAll(event.how === 'continued');
      default:
        return [];
    }
  };
}

function nameOf({ call, undo }: BegunCall): string {
  return undo ? `undo ${call.id}` : call.id;
}

/** Returns what an activity is to execute; null for any other activity. */
function begunCall({ activity, input }: EventOf<'scheduled'>): BegunCall | null {
  if (!isObject(input)) return null;
  const isUndo = activity === 'runFunction' && input['function'] === 'undo';
  if (activity !== 'runTool' && !isUndo) return null;
  const { call, effect, find, judge } = input;
  const isCheck = find === true || judge === true;
  if (!isCall(call) || isCheck || effect === 'read') return null;
  const begun = { call, effect: typeof effect === 'string' ? effect : '', attempt: 1 };
  return isUndo ? { ...begun, undo: true } : begun;
}

type EndEvent = EventOf<'completed'> | EventOf<'failed'> | EventOf<'cancelled'>;

function shownBy(begun: BegunCall, event: EndEvent): Shown {
  switch (event.type) {
    case 'completed':
      return shownByResult(begun, isObject(event.result) ? event.result : {});
    case 'failed':
      return shownByFailure(begun, event);
    case 'cancelled':
      return null;
  }
}

/** Results of an activity that has not called the tool; the run goes on with the call. */
const NOT_BEGUN: readonly unknown[] = ['not_started', 'undecided', 'input_required'];
/** The errors of a call that its worker has refused. */
const REFUSED: readonly unknown[] = ['denied', 'invalid_json', 'invalid_arguments', 'not_executed'];

function shownByResult(
  { attempt, undo }: BegunCall,
  { ok, text, happened }: Record<string, unknown>,
): Shown {
  // An earlier attempt may have been lost after the tool had begun.
  const isFirst = attempt === 1;
  if (undo && happened === 'undecided') return isFirst ? 'none' : 'open';
  if (undo) return happened === true ? true : null;
  if (NOT_BEGUN.includes(ok)) return isFirst ? 'none' : 'open';
  if (ok === true) return true;
  if (ok !== false || typeof text !== 'string') return null;
  if (!REFUSED.includes(failureOf({ ok, text })?.type)) return false;
  return isFirst ? 'none' : null;
}

function shownByFailure(
  { call, effect, attempt }: BegunCall,
  { failure }: EventOf<'failed'>,
): Shown {
  const problem = parseProblem(failure.details);
  if (problem === null) return null;
  if (attempt > 1) return 'open';
  // What happens while a `once` tool is executed is a result.
  if (effect === 'once') return 'none';
  const { reason } = problem;
  const isTool = reason === 'tool_missing' || reason === 'tool_changed';
  // The function of a node may call a model that has no credentials; a tool is looked for first.
  const isOfServer = reason === 'credentials' && nodeOfCall(call) === null;
  return isTool || isOfServer ? 'none' : 'open';
}
