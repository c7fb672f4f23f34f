import type { Limits } from '../core/definition/definition.js';
import { actorOf } from '../core/input/turn-context.js';
import type { RecordedDecision } from '../core/state/state.js';
import { sha256Hex, isObject } from '../core/text/json.js';
import type { Message, ToolCall } from '../core/transcript/messages.js';
import type { HistoryEvent } from './history-event.js';
import { type DecisionView, type Projection, createProjector, type EventOf } from './projection.js';
import { previousRunId } from './segments.js';
import { parseProblem } from '../core/interpret/block.js';
import { nodeOfCall } from '../core/state/turn-definition.js';
import { failureOf } from '../core/transcript/call-result.js';
import { isCall } from '../core/transcript/message-shapes.js';

/** Something that a person, a program, or a tool has done in a run. It holds digests, never texts. */
export type AuditAct =
  | { readonly type: 'started'; readonly agent: string; readonly definition: string | null }
  /** `message`: its number in the transcript; `digest`: SHA-256 (hex) of its text. */
  | {
      readonly type: 'sent';
      readonly message: number;
      readonly turn: number;
      readonly digest: string;
    }
  /**
   * A decision about a request, a pause, other limits, a canceled turn, a closed run, a revoked grant, or
   * an undo. `refused`: why it had no effect. `limits`: those that apply from then on.
   */
  | {
      readonly type: 'decided';
      readonly what: RecordedDecision['what'];
      readonly request?: string;
      readonly as?: string;
      readonly call?: string;
      readonly refused?: string;
      readonly limits?: Limits;
    }
  /**
   * A tool with a side effect was executed, or may have been. `arguments`: their digest; `ok`: null if it
   * is unknown whether it succeeded, or took effect at all; `undo`: its `undo` was executed for the call,
   * which had succeeded.
   */
  | {
      readonly type: 'executed';
      readonly call: string;
      readonly tool: string;
      readonly effect: string;
      readonly arguments: string;
      readonly ok: boolean | null;
      readonly undo?: true;
    }
  /** The run has called an agent, whose run has entries of its own. */
  | { readonly type: 'called'; readonly call: string; readonly child: string }
  | { readonly type: 'cancel-requested' }
  /** `how`: as Temporal says it; `reason`: that of the outcome. */
  | { readonly type: 'ended'; readonly how: string; readonly reason: string | null }
  /**
   * The server has deleted a segment that the archive does not have, or has only the beginning of.
   * `segment`: its run id; empty if it is unknown.
   */
  | { readonly type: 'lost'; readonly segment: string }
  /**
   * The run was erased. `erasure`: the entry of the erasure log; `complete`: false if something is left of
   * it.
   */
  | { readonly type: 'erased'; readonly erasure: string; readonly complete: boolean }
  /** An entry of the erasure log cannot be read. It may be about any run, so `run` is empty. */
  | { readonly type: 'damaged'; readonly erasure: string };

/** An act with its place, before it is chained. */
export type AuditFact = AuditAct & {
  readonly run: string;
  /** ISO 8601. */
  readonly at: string;
  /** Who did it: a claim of 1 to 200 characters; absent if none was made. */
  readonly by?: string;
  /** The interface that has verified `by`, such as `http`; absent: a claim. */
  readonly door?: string;
};

/**
 * Returns the acts of a run in the order in which it learned of them: a pure function of its histories.
 * `segments`: the events of each segment, oldest first.
 */
export function auditFacts({
  id: run,
  segments,
}: {
  readonly id: string;
  readonly segments: readonly (readonly HistoryEvent[])[];
}): readonly AuditFact[] {
  const executions = followExecutions();
  const read = segments.map((events) => readActs(events, executions));
  const [first] = read;
  const last = read.at(-1);
  const began = segments[0]?.find(({ type }) => type === 'started');
  if (first === undefined || last === undefined || began === undefined) return [];
  const place = (at: number): Pick<AuditFact, 'run' | 'at'> => ({
    run,
    at: new Date(at).toISOString(),
  });
  const { input, state } = first.view;
  const started: AuditFact = {
    ...place(began.at),
    type: 'started',
    agent: input?.agent ?? '',
    definition: state?.config.definition.hash || null,
    ...actorOf(input ?? {}),
  };
  // A new segment carries messages of the one before.
  const sent = new Set<number>();
  const told = read.flatMap(({ acts, view, lastAt }, index): readonly TimedAct[] => {
    const next = segments[index + 1];
    if (next === undefined || view.ended !== null) return acts;
    // The archive got the segment before its end, and the server no longer has it.
    return [...acts, { at: lastAt, act: { type: 'lost', segment: previousRunId(next) } }];
  });
  const acts = told.filter(({ act }) => {
    if (act.type !== 'sent') return true;
    const isNew = !sent.has(act.message);
    sent.add(act.message);
    return isNew;
  });
  const { ended, outcome } = last.view;
  return [
    started,
    ...acts.map(({ at, act, ...who }): AuditFact => ({ ...place(at), ...actorOf(who), ...act })),
    ...(ended === null
      ? []
      : [
          {
            ...place(ended.at),
            type: 'ended',
            how: ended.how,
            reason: outcome?.reason ?? null,
          } as const,
        ]),
  ];
}

interface TimedAct {
  readonly at: number;
  readonly by?: string | undefined;
  readonly door?: string | undefined;
  readonly act: AuditAct;
}

/** Returns the acts of a segment in the order in which the run learned of them. */
function readActs(
  events: readonly HistoryEvent[],
  executions: ReturnType<typeof followExecutions>,
): {
  readonly acts: readonly TimedAct[];
  readonly view: Projection;
  readonly lastAt: number;
} {
  const projector = createProjector();
  const acts: TimedAct[] = [];
  const seen = { decisions: 0, messages: 0 };
  const note = (view: Projection): void => {
    const fresh = view.messages.slice(seen.messages).flatMap(sentBy);
    const decided = view.decisions.slice(seen.decisions).map(decidedBy);
    acts.push(...decided, ...fresh);
    seen.decisions = view.decisions.length;
    seen.messages = view.messages.length;
  };
  for (const event of events) {
    projector.push(event);
    note(projector.processed());
    const { at } = event;
    const shown = [...executions(event).map(executed), ...actsOf(event)];
    const who = event.type === 'cancel-requested' ? actorOf({ by: event.by }) : {};
    acts.push(...shown.map((act) => ({ at, ...who, act })));
  }
  const view = projector.view();
  note(view);
  return { acts, view, lastAt: events.at(-1)?.at ?? 0 };
}

function sentBy(message: Message): readonly TimedAct[] {
  if (!isFromPerson(message)) return [];
  const { n, turn, by, door, at, text } = message;
  // Only documents may be too large for the history, and no person has sent them.
  return [{ at, by, door, act: { type: 'sent', digest: sha256Hex(text), message: n, turn } }];
}

function decidedBy({ decision, limits }: DecisionView): TimedAct {
  const { what, at, by, door, request, as, call, refused } = decision;
  const act: AuditAct = {
    type: 'decided',
    what,
    ...(request !== undefined && { request }),
    ...(as !== undefined && { as }),
    ...(call !== undefined && { call }),
    ...(refused !== undefined && { refused }),
    ...(what === 'setLimits' && { limits }),
  };
  return { at, by, door, act };
}

function isFromPerson(message: Message): message is Message & { readonly role: 'user' } {
  if (message.role !== 'user') return false;
  const { origin, compacts, side, document } = message;
  return origin === undefined && compacts === undefined && !side && document === undefined;
}

function actsOf(event: HistoryEvent): readonly AuditAct[] {
  switch (event.type) {
    case 'child-started':
      return [{ type: 'called', call: event.call, child: event.child }];
    case 'cancel-requested':
      return [{ type: 'cancel-requested' }];
    default:
      return [];
  }
}

function executed({ call, effect, ok, undo }: ExecutedCall): AuditAct {
  const { id, name, digest } = call;
  const act = { type: 'executed', call: id, tool: name, effect, arguments: digest, ok } as const;
  return undo ? { ...act, undo } : act;
}

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
