import { sha256Hex } from '../digest.js';
import { canonicalJson, isObject, type Json, type JsonObject } from '../json.js';
import type { ParsedArguments } from '../transcript/messages.js';
import type { Verdict } from '../requests/rules.js';
import { openRefs, refsIn, type Reference, type Referring } from './references.js';

/** A planned call. Nothing has been executed. */
export interface PlannedAction extends Referring {
  /** Unique in the plan: `a1`, `a2`, … */
  readonly id: string;
  readonly tool: string;
  /** References such as `{"$ref":"a1","path":"data.id"}` stand for results of earlier actions. */
  readonly arguments: JsonObject;
  /**
   * What the tool gets, if its schema changes the arguments; absent if they contain references, or
   * if it gets what was written.
   */
  readonly parsed?: ParsedArguments;
  /** Actions that must finish first, in addition to those that the arguments refer to. */
  readonly after?: readonly string[];
  /** The tool's own description of the call, for people. */
  readonly shown?: string;
  /** The approval that the rules require; absent if they allow the call. */
  readonly asks?: Verdict;
  /**
   * The arguments were completed after the rules were evaluated, so a worker evaluates the call again.
   */
  readonly late?: true;
}

/** A read that was executed while the plan was made. */
export interface PlannedRead {
  readonly id: string;
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly result: ActionResult;
}

/** How an action has ended. */
export type ActionResult =
  | {
      readonly ok: true;
      readonly value: Json;
      /** The name of the artifact that the tool returned; `value` is then a text about it. */
      readonly artifact?: string;
    }
  | { readonly ok: false; readonly error: { readonly type: string; readonly message: string } };

/** What a `plan` node saves. */
export interface Plan {
  readonly actions: readonly PlannedAction[];
  readonly done: readonly PlannedRead[];
  /** At least one action needs approval. */
  readonly asks: boolean;
  /** The planner's own text. */
  readonly answer?: string;
  /** Actions that a person left out, and those that depend on them. */
  readonly dropped?: readonly string[];
  /** Actions left undecided when the question expired. */
  readonly unanswered?: readonly string[];
}

/** A plan without actions. */
export const EMPTY_PLAN: Plan = { actions: [], done: [], asks: false };

/** Ids have numbers, so no word in a person's answer can be mistaken for one. */
const ID = /^a\d{1,4}$/;

/**
 * Maximum actions of a plan that need approval, because the person who decides sees each of them.
 */
export const MAX_ASKING = 50;

/** The limits of a plan. */
interface PlanBounds {
  readonly tools: readonly string[];
  readonly maxActions: number;
  /** Returns the references of an action; default: as a planner wrote them. */
  readonly refsOf?: (action: Record<string, unknown>) => readonly Reference[];
}

/** Returns the problem with a plan that needs too many approvals to show, or null. */
export function askingProblem(actions: readonly PlannedAction[]): string | null {
  const asking = actions.filter(({ asks }) => asks !== undefined).length;
  if (asking <= MAX_ASKING) return null;
  return `actions: expected at most ${MAX_ASKING} that need approval, got ${asking}; plan fewer at a time`;
}

/** Maximum characters of all arguments of a plan together. */
const MAX_CHARACTERS = 96 * 1024;

/** A fault of a plan, in words for the model. */
export interface PlanFault {
  /** The place of the action in the list; absent for a fault of the whole plan. */
  readonly index?: number;
  readonly problem: string;
}

/** Returns the first problem with a plan, or null if its structure is sound. */
export function planProblem(value: unknown, bounds: PlanBounds): string | null {
  return planFaults(value, bounds)[0]?.problem ?? null;
}

/**
 * Returns all faults in the structure of a model's plan. An action may depend only on earlier ones,
 * so a plan has no cycles.
 */
export function planFaults(
  value: unknown,
  { tools, maxActions, refsOf = writtenRefs }: PlanBounds,
): readonly PlanFault[] {
  const actions: unknown = isObject(value) ? value['actions'] : undefined;
  if (!Array.isArray(actions)) return [{ problem: 'actions: expected a list of actions' }];
  if (actions.length > maxActions) {
    const got = `got ${actions.length}; plan fewer at a time`;
    return [{ problem: `actions: expected at most ${maxActions}, ${got}` }];
  }
  const characters = JSON.stringify(actions).length;
  if (characters > MAX_CHARACTERS) {
    const got = `got ${characters}; shorten the arguments`;
    return [{ problem: `actions: expected at most ${MAX_CHARACTERS} characters, ${got}` }];
  }
  const earlier: string[] = [];
  return actions.flatMap((action: unknown, index): readonly PlanFault[] => {
    const problems = actionProblems(action, { earlier, tools, refsOf });
    if (isObject(action)) earlier.push(String(action['id']));
    return problems.map((problem) => ({ index, problem: `actions[${index}]${problem}` }));
  });
}

function actionProblems(
  action: unknown,
  {
    earlier,
    tools,
    refsOf,
  }: Required<Pick<PlanBounds, 'tools' | 'refsOf'>> & { readonly earlier: readonly string[] },
): readonly string[] {
  if (!isObject(action)) return [': expected an object { id, tool, arguments }'];
  const { id, tool, arguments: given, after = [] } = action;
  const problems: string[] = [];
  if (typeof id !== 'string' || !ID.test(id)) {
    problems.push(`.id: expected "a" and a number, such as "a1", got ${shown(id)}`);
  } else if (earlier.includes(id)) {
    problems.push(`.id: "${id}" is the id of an earlier action; use another id`);
  }
  if (typeof tool !== 'string' || !tools.includes(tool)) {
    const names = tools.slice(0, 40).join(', ');
    problems.push(`.tool: unknown tool ${shown(tool)}; expected one of ${names}`);
  }
  if (!isObject(given)) problems.push(`.arguments: expected an object, got ${shown(given)}`);
  if (!Array.isArray(after)) problems.push(`.after: expected a list of ids, got ${shown(after)}`);
  const listed: readonly unknown[] = Array.isArray(after) ? after : [];
  const needs: readonly unknown[] = [...listed, ...refsOf(action).map(({ ref }) => ref)];
  const unknown = needs.filter((one) => typeof one !== 'string' || !earlier.includes(one));
  const known = `available: ${earlier.join(', ') || 'none'}`;
  for (const one of new Set(unknown)) {
    problems.push(
      one === id
        ? `: ${shown(id)} depends on itself; refer only to earlier actions`
        : `: it depends on ${shown(one)}, which is not an earlier action; ${known}`,
    );
  }
  return problems;
}

function writtenRefs({ arguments: given }: Record<string, unknown>): readonly Reference[] {
  return refsIn(given);
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 64);
}

/** Returns the ids of the actions that this one depends on. */
export function needsOf(
  action: Pick<PlannedAction, 'arguments' | 'after' | 'refs'>,
): readonly string[] {
  const { after = [] } = action;
  return [...new Set([...after, ...openRefs(action).map(({ ref }) => ref)])];
}

/** Returns the digest of a plan's actions. A confirmation is bound to it. */
export function planDigest({ actions }: Pick<Plan, 'actions'>): string {
  const json = actions.map(({ id, tool, arguments: given, after = [], refs, parsed }): Json => {
    return {
      id,
      tool,
      arguments: given,
      after,
      ...(refs && { refs }),
      ...(parsed && { parsed: parsed.digest }),
    };
  });
  return sha256Hex(canonicalJson(json));
}

/** Returns the plan without these actions and those that depend on them. */
export function withoutActions(plan: Plan, ids: ReadonlySet<string>): Plan {
  const dropped = new Set(ids);
  const actions = plan.actions.filter((action) => {
    if (needsOf(action).some((id) => dropped.has(id))) dropped.add(action.id);
    return !dropped.has(action.id);
  });
  const gone = plan.actions.filter(({ id }) => dropped.has(id)).map(({ id }) => id);
  return {
    ...plan,
    actions,
    asks: actions.some(({ asks }) => asks !== undefined),
    ...(gone.length > 0 && { dropped: [...(plan.dropped ?? []), ...gone] }),
  };
}

/** Reads the plan that a `plan` node has saved; an empty one if the field has none. */
export function planIn(values: JsonObject, field: string): Plan {
  const value = Object.hasOwn(values, field) ? values[field] : undefined;
  if (!isObject(value) || !Array.isArray(value['actions']) || !Array.isArray(value['done'])) {
    return EMPTY_PLAN;
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only a `plan` node fills the field
  return value as unknown as Plan;
}

/** Returns a plan as the value of a field. */
export function planValue(plan: Plan): JsonObject {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a plan is JSON
  return plan as unknown as JsonObject;
}
