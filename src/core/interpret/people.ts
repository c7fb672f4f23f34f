import { acceptMessage } from '../ask.js';
import { resolvedCall, type Resolution } from '../calls/call-result.js';
import { findTool } from '../calls/batch.js';
import { safetyResult } from '../calls/safety.js';
import { decidedBefore, type DecisionRecord, type DecisionName } from '../decisions.js';
import { isLoaded } from '../definition/initial-config.js';
import type { Limits } from '../definition/definition.js';
import type { RunEvent } from '../events.js';
import type { FactOf } from '../facts.js';
import type { Ask } from '../inbox.js';
import { isObject, textField } from '../json.js';
import type { RunState } from '../state.js';
import { openCallById } from '../turn.js';
import { findWork } from '../work/work.js';
import { resumedWork } from './block.js';
import { finishCall } from './calls.js';

type Update = FactOf<'update'>;

const DECISIONS: readonly string[] = [
  'resolve',
  'cancelTurn',
  'pause',
  'resume',
  'setLimits',
  'close',
] satisfies readonly DecisionName[];

/**
 * Returns the events of an update, which the run's validators have accepted. An update that is sent
 * again has no second effect.
 */
export function decided(state: RunState, update: Update): readonly RunEvent[] {
  if (update.name === 'ask') return asked(state, update);
  if (!isDecision(update.name) || decidedBefore(state.decisions, update.id) !== undefined)
    return [];
  const decision = decisionOf(state, update, update.name);
  const record: RunEvent = { type: 'decided', decision };
  if (update.name !== 'setLimits') return [...effects(state, update), record];
  const limits = limitsIn(update.input);
  // Before the agent is loaded, its price and its limits are not known.
  if (!isLoaded(state)) return [{ type: 'limits-asked', asked: { limits, decision } }];
  return [{ type: 'limits-set', limits }, record];
}

function isDecision(name: string): name is DecisionName {
  return DECISIONS.includes(name);
}

function effects(state: RunState, update: Update): readonly RunEvent[] {
  switch (update.name) {
    case 'resolve':
      return resolved(state, update);
    case 'cancelTurn':
      return [{ type: 'interruption-requested', by: 'cancelTurn' }];
    case 'pause':
      return [{ type: 'paused', paused: true }];
    case 'resume':
      return [
        ...(state.paused ? [{ type: 'paused', paused: false } as const] : []),
        ...allResumed(state),
      ];
    case 'close':
      return [{ type: 'ending', by: 'closed' }];
    default:
      return [];
  }
}

function allResumed({ work }: RunState): readonly RunEvent[] {
  return work.map((one) => ({ type: 'work-changed', work: resumedWork(one) }));
}

function limitsIn(input: unknown): Limits {
  if (!isObject(input)) return {};
  const { by: _, ...limits } = input;
  return limits;
}

function decisionOf({ turn }: RunState, { id, input, at }: Update, what: DecisionName): DecisionRecord {
  const given = isObject(input) ? input : {};
  const by = textField(given, 'by');
  return {
    what,
    id,
    at,
    ...(by !== '' && { by }),
    ...(what === 'cancelTurn' && { turn: turn.number }),
    ...(what === 'resolve' && { call: textField(given, 'call'), as: textField(given, 'as') }),
  };
}

/** A person decided about a call that waits for it, or accepted the new form of a tool. */
function resolved(state: RunState, { input, at }: Update): readonly RunEvent[] {
  if (!isObject(input)) return [];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  const resolution = input as unknown as Resolution;
  const call = openCallById(state, resolution.call);
  const tool = call && findTool(state, call.name);
  if (!call || !tool) return resolution.as === 'accept' ? allResumed(state) : [];
  if (resolution.as === 'accept') {
    const definition = resolution.definition ?? '';
    return [{ type: 'tool-accepted', tool: call.name, definition }, ...allResumed(state)];
  }
  const work = findWork(state, call.id);
  if (work?.phase !== 'asking') return [];
  const isSafety = work.about === 'safety_check';
  const result = isSafety ? safetyResult(call, resolution) : resolvedCall(call, tool, resolution);
  if (result !== null) return finishCall(result, at);
  const again = isSafety ? { acknowledged: true as const } : { retried: true as const };
  const { key, starts } = work;
  return [
    {
      type: 'work-changed',
      work: {
        name: call.id,
        ...(key !== undefined && { key }),
        ...(starts !== undefined && { starts }),
        ...again,
        phase: 'waiting',
      },
    },
  ];
}

function asked(state: RunState, { input, id }: Update): readonly RunEvent[] {
  if (!isObject(input)) return [];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  const ask = input as unknown as Ask;
  const { event } = acceptMessage(state, ask, ask.id ?? id);
  return event === null ? [] : [event];
}
