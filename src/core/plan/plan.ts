import type { Verdict } from '../definition/rules.js';
import {
  type Json,
  type JsonObject,
  canonicalJson,
  isJsonObject,
  isObject,
  sha256Hex,
  valueAt,
} from '../text/json.js';
import type { ParsedArguments } from '../transcript/messages.js';

/** The result of an earlier action, or a part of it. In JSON: `{"$ref":"a1","path":"data.id"}`. */
export interface Reference {
  readonly ref: string;
  /** Names and indexes, separated by dots; empty: the whole result. */
  readonly path: string;
}

/** The keys that lead to a value. */
export type Place = readonly (string | number)[];

/** A reference and its place in the arguments. */
type PlacedReference = Reference & { readonly at: Place };

/** Arguments in which some references may have been replaced by data. */
export interface Referring {
  readonly arguments: JsonObject;
  /**
   * The places of the open references; absent: every part of the arguments that looks like a
   * reference is one. Data that was filled in may look like a reference and is never one.
   */
  readonly refs?: readonly Place[];
}

/** Returns the value as a reference; null if it is not one. */
function referenceOf(value: unknown): Reference | null {
  if (!isObject(value)) return null;
  const { $ref, path = '', ...rest } = value;
  if (typeof $ref !== 'string' || typeof path !== 'string') return null;
  return Object.keys(rest).length === 0 ? { ref: $ref, path } : null;
}

/**
 * Returns all references in a value that a planner wrote, at any depth, each with its place. For
 * arguments into which data may have been filled, use `openRefs`.
 */
export function refsIn(value: unknown, at: Place = []): readonly PlacedReference[] {
  const reference = referenceOf(value);
  if (reference !== null) return [{ ...reference, at }];
  if (Array.isArray(value)) {
    return value.flatMap((inner: unknown, index) => refsIn(inner, [...at, index]));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => refsIn(inner, [...at, key]));
}

/** Returns the references that are still to be resolved. */
export function openRefs({ arguments: given, refs }: Referring): readonly PlacedReference[] {
  if (refs === undefined) return refsIn(given);
  return refs.flatMap((at) => {
    const reference = referenceOf(at.reduce(innerValue, given));
    return reference === null ? [] : [{ ...reference, at }];
  });
}

function innerValue(value: unknown, key: string | number): unknown {
  if (Array.isArray(value)) return typeof key === 'number' ? value[key] : undefined;
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/**
 * The target of a reference: the value of a result, or the name of its artifact. `failed`: the
 * action has none, and every part of it is null.
 */
export type Referred =
  | { readonly value: Json }
  | { readonly artifact: string }
  | { readonly failed: true }
  /** Only a part of the value is kept. `lost`: why the rest could not be kept. */
  | { readonly cut: true; readonly lost?: string };

/** The outcome of `resolveReferences`. */
type Resolved =
  | ({ readonly ok: true } & Referring)
  | { readonly ok: false; readonly problem: string };

/**
 * Replaces the open references with the results of finished actions, or with artifact names,
 * because tools read artifacts by name. A reference is resolved once: results are inserted
 * unchanged, and nothing in them is a reference, now or later. A reference to an unfinished action
 * stays. `results`: by action id.
 */
export function resolveReferences(
  given: Referring,
  results: ReadonlyMap<string, Referred>,
): Resolved {
  const open = openRefs(given);
  const left = open.filter(({ ref }) => !results.has(ref)).map(({ at }) => at);
  let filled: Json = given.arguments;
  for (const { at, ...reference } of open) {
    const result = results.get(reference.ref);
    if (result === undefined) continue;
    const found = targetOf(reference, result);
    if ('problem' in found) return { ok: false, problem: found.problem };
    filled = withValueAt(filled, at, found.value);
  }
  const value = isJsonObject(filled) ? filled : {};
  const isPlain = refsIn(value).length === left.length;
  return { ok: true, arguments: value, ...(!isPlain && { refs: left }) };
}

/** Returns the value that a reference stands for, or why there is none. */
function targetOf(
  reference: Reference,
  result: Referred,
): { readonly value: Json } | { readonly problem: string } {
  const { path } = reference;
  if ('failed' in result) return { value: null };
  if ('cut' in result) return { problem: cutText(reference, result) };
  if ('artifact' in result) {
    if (path === '') return { value: result.artifact };
    return { problem: artifactText(reference, result.artifact) };
  }
  const found = valueAt(result.value, path);
  return found === undefined ? { problem: missingText(reference, result.value) } : { value: found };
}

/** Returns a copy of the value with another value at a place. */
export function withValueAt(value: Json, [key, ...rest]: Place, inner: Json): Json {
  if (key === undefined) return inner;
  if (Array.isArray(value)) {
    return value.map((one: Json, index) => (index === key ? withValueAt(one, rest, inner) : one));
  }
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      name === key ? withValueAt(one ?? null, rest, inner) : one,
    ]),
  );
}

function artifactText({ ref, path }: Reference, name: string): string {
  return (
    `the result of ${ref} is the artifact "${name}", so nothing at "${path}" can be taken from it; ` +
    'refer to it without a path, and a tool gets its name'
  );
}

function cutText({ ref }: Reference, { lost }: { readonly lost?: string }): string {
  const [why, help] =
    lost === undefined
      ? [
          'is too long to be passed on: only a part of it is kept',
          ', or let its tool return an artifact',
        ]
      : [`is incomplete (${lost})`, ''];
  return `the result of ${ref} ${why}; write what is needed of it into the arguments${help}`;
}

const MAX_NAMES = 20;

function missingText({ ref, path }: Reference, result: Json): string {
  const names = isObject(result) ? Object.keys(result).slice(0, MAX_NAMES).join(', ') : '';
  const has = names === '' ? 'it has no fields' : `it has ${names}`;
  return `the result of ${ref} has nothing at "${path}"; ${has}`;
}

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
      /** `value` is a text with only a part of a long result, to which no action can refer. */
      readonly cut?: true;
      /** Why the rest of a cut result is nowhere else. */
      readonly lost?: string;
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
const MAX_ASKING = 50;

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
