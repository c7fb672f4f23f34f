import {
  AGENT_BLOCKS,
  MODEL_BLOCKS,
  TOOL_BLOCKS,
  type BlockedReason,
  FAIL_REASONS,
  type Outcome,
} from '../../../src/core/transcript/outcome.js';
import type { Failure, FactOf, Task } from '../../../src/core/run/events.js';
import { sha256Hex, isObject } from '../../../src/core/text/json.js';
import type { RunConfig } from '../../../src/core/state/state.js';
import { failure } from '../turn.js';
import type { Dice } from './dice.js';
import { chooseClosing, chooseReply, chooseSummary, chooseVerdict } from './replies.js';

/** The end of an activity, without its task and its time. */
export type Ending =
  | { readonly type: 'completed'; readonly result: unknown }
  | { readonly type: 'failed'; readonly failure: Failure }
  | { readonly type: 'cancelled' };

const BLOB = { sha256: 'a'.repeat(64), bytes: 9 };
/** A result that a person may have recorded by hand. */
const RUBBISH = [null, 'by hand', { ok: true }, { text: 7 }] as const;

const done = (result: unknown): Ending => ({ type: 'completed', result });

function blocked(dice: Dice, reasons: readonly [BlockedReason, ...BlockedReason[]]): Ending {
  const reason = dice.pick(reasons);
  const problem = {
    type: 'blocked',
    reason,
    ...(dice.chance(3) && { waitMs: 70_000 }),
    ...(reason === 'storage' && dice.chance(2) && { blob: dice.pick(['b', 'c']) }),
    ...(reason === 'tool_changed' && { definition: 'new form' }),
    ...(reason === 'provider' && dice.chance(2) && { paid: { text: 'paid' } }),
  };
  return { type: 'failed', failure: failure(`blocked: ${reason}`, problem) };
}

function broken(dice: Dice): Ending {
  const reason = dice.pick(FAIL_REASONS);
  const kinds: readonly [Failure, ...Failure[]] = [
    failure('it broke', { type: 'failed', reason }),
    { ...failure('too late'), type: '', timedOut: true },
    failure('failed by hand'),
    { ...failure('rubbish by hand'), details: ['rubbish', { type: 'blocked' }] },
  ];
  return { type: 'failed', failure: dice.pick(kinds) };
}

/** Returns the end of an activity that nothing interrupts. The first choice is success. */
export function chooseEnding(dice: Dice, task: Task, config: RunConfig): Ending {
  const how = dice.roll(20);
  if (how === 1) return done(dice.pick(RUBBISH));
  if (how === 2) return broken(dice);
  const input = isObject(task.input) ? task.input : {};
  switch (task.activity) {
    case 'callModel':
      if (how > 2 && how < 6) return blocked(dice, MODEL_BLOCKS);
      if (input['compact'] !== undefined) return done(chooseSummary(dice));
      if (input['closing'] === true) return done(chooseClosing(dice));
      return done(chooseReply(dice, config.definition.output !== undefined));
    case 'runTool':
      return how > 2 && how < 6 ? blocked(dice, TOOL_BLOCKS) : done(chooseResult(dice, task));
    case 'runFunction':
      if (input['function'] === 'undo') return done(chooseUndo(dice, input));
      return how === 3 ? blocked(dice, ['storage']) : done(chooseVerification(dice));
    case 'checkDecision':
      return done(chooseChecked(dice, input));
    case 'retrieveDocuments':
      if (how === 3) return blocked(dice, TOOL_BLOCKS);
      return done({ documents: how > 9 ? [] : [{ text: 'found', id: 'd' }] });
    case 'archiveMessages':
      if (how === 3) return blocked(dice, ['storage']);
      return done(input['chunk'] === null ? {} : { blob: BLOB });
    case 'loadAgent':
      return how === 3 ? blocked(dice, AGENT_BLOCKS) : done(config);
    case 'followRun':
      return done(chooseFollowed(dice));
    default:
      return done(null);
  }
}

/** Returns the end of an activity that is being canceled: it may still end in another way. */
export function chooseCanceledEnding(dice: Dice, task: Task, config: RunConfig): Ending {
  return dice.chance(3) ? chooseEnding(dice, task, config) : { type: 'cancelled' };
}

function chooseResult(dice: Dice, { input }: Task): unknown {
  if (isObject(input) && input['find'] === true) return { ok: true, text: '' };
  const artifact = { name: 'rows', blob: BLOB, kind: 'array of 3' };
  return dice.pick([
    { ok: true, text: 'fine' },
    { ok: true, text: `fine ${dice.roll(3)}` },
    { ok: true, text: 'rows', artifact },
    { ok: false, text: '{"error":{"type":"tool_error","message":"no"}}' },
    { ok: 'unknown', message: 'the connection broke' },
    { ok: 'not_started', message: 'no input' },
  ]);
}

function chooseVerification(dice: Dice): unknown {
  return dice.pick([
    { happened: true, result: { ok: true, text: 'it happened' } },
    { happened: false },
    { happened: 'unknown', message: 'no idea' },
    { happened: true, result: { ok: false, text: 'no' } },
  ]);
}

/** Returns the outcome of an undo: the rules may require approval first, or deny it. */
function chooseUndo(dice: Dice, { approved }: Record<string, unknown>): unknown {
  const asks = { then: 'ask', why: 'a rule', ...(dice.chance(2) && { expires: 20_000 }) };
  const verdict = dice.pick([asks, { then: 'deny', why: 'never' }]);
  const undecided = { happened: 'undecided', verdict };
  return dice.pick<unknown>([
    { happened: true, result: { ok: true, text: 'undone' } },
    approved === true ? { happened: false } : undecided,
    { happened: false },
    { happened: 'unknown', message: 'no idea' },
  ]);
}

/** Returns the worker's check of a decision: mostly that it is valid. */
function chooseChecked(dice: Dice, { decision, call }: Record<string, unknown>): unknown {
  if (dice.chance(5)) return { ok: false, message: 'it does not fit' };
  if (!isObject(decision)) return { ok: true };
  if (decision['as'] === 'answer') {
    return dice.chance(8) ? { ok: true } : { ok: true, result: { text: 'as a person reported' } };
  }
  if (decision['as'] !== 'edit' || !isObject(call) || dice.chance(8)) return { ok: true };
  const json = JSON.stringify(decision['arguments']);
  const { name, safety } = call;
  const edited = { name, arguments: json, digest: sha256Hex(json), ...chooseVerdict(dice) };
  return { ok: true, call: { ...edited, ...(safety !== undefined && { safety }) } };
}

/** Returns the outcome of a called agent. */
function chooseOutcome(dice: Dice): Outcome {
  const usage = { inputTokens: 7, outputTokens: 3, cachedTokens: 2, costUsd: 0.001 };
  const body = { answer: 'expert', output: null, steps: 1, toolCalls: 0, usage, segments: 1 };
  return dice.pick<Outcome>([
    { status: 'completed', reason: 'answer', ...body },
    { status: 'stopped', reason: 'steps', ...body },
    { status: 'failed', reason: 'error', ...body, error: 'no' },
    { status: 'cancelled', reason: 'cancelled', ...body },
  ]);
}

function chooseFollowed(dice: Dice): unknown {
  return dice.pick<unknown>([
    { type: 'ended', outcome: chooseOutcome(dice) },
    { type: 'lost' },
    { type: 'other', running: true },
    { type: 'other', running: false },
  ]);
}

type ChildEnd = Omit<FactOf<'child-ended'>, 'at' | 'call'>;

/** Returns how the run of a called agent ends. */
export function chooseChildEnd(dice: Dice): ChildEnd {
  if (dice.chance(5)) return { type: 'child-ended', outcome: null, message: 'terminated' };
  return { type: 'child-ended', outcome: chooseOutcome(dice), message: '' };
}
