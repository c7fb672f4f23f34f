import { findTool, notExecuted } from '../calls/batch.js';
import type { CallResult } from '../calls/call-result.js';
import type { PlanNode } from '../graph/definition.js';
import { isObject, parseJson, type JsonObject } from '../json.js';
import type { RunState } from '../state.js';
import type { ToolCall } from '../transcript/messages.js';
import type { Batch } from '../turn.js';
import { actionResult, referred } from './action-result.js';
import { askingProblem, planIn, planProblem, type Plan, type PlannedAction } from './plan.js';
import {
  openRefs,
  refsIn,
  resolveReferences,
  type Reference,
  type Referred,
} from './references.js';

/**
 * Records the calls of a planner's message as actions instead of executing them. Reads that the
 * rules allow are executed at once, because the planner needs their results.
 */
export function noteActions(
  state: RunState,
  node: PlanNode,
  batch: Batch,
): { readonly plan: Plan; readonly batch: Batch } {
  let plan = planIn(state.graph?.values ?? {}, node.save);
  const results = batch.calls.map((call, index): CallResult | null => {
    const known = batch.results[index] ?? null;
    if (known !== null || isRead(state, call)) return known;
    const written = argumentsOf(call);
    if (written === null || call.parsed?.blob !== undefined)
      return notExecuted(call, 'its arguments are too long for a plan');
    if (findTool(state, call.name)?.kind === 'wait') return notExecuted(call, 'a plan cannot wait');
    // Results of reads are filled in now, so the person who decides sees them.
    const filled = resolveReferences({ arguments: written }, valuesOf(plan));
    if (!filled.ok) return notExecuted(call, filled.problem);
    const { ok: _, ...given } = filled;
    const action: PlannedAction = {
      id: nextId(plan),
      tool: call.name,
      ...given,
      ...(call.parsed && { parsed: call.parsed }),
      ...(call.summary !== undefined && { shown: call.summary }),
      ...(call.verdict && { asks: call.verdict }),
      ...(refsIn(written).length > 0 && { late: true }),
    };
    const actions = [...plan.actions, action];
    const { maxActions } = node;
    const bounds = { tools: [...toolNames(plan), call.name], maxActions };
    const refsOf = (one: object): readonly Reference[] =>
      openRefs(actions.find((noted) => noted === one) ?? action);
    const problem = planProblem({ actions }, { ...bounds, refsOf }) ?? askingProblem(actions);
    if (problem !== null) return notExecuted(call, problem.replace(/^actions\[\d+\]:? ?/, ''));
    plan = { ...plan, actions, asks: plan.asks || action.asks !== undefined };
    return { id: call.id, ok: true, text: notedText(action), executed: false };
  });
  return { plan, batch: { ...batch, results } };
}

/** Adds a message's executed reads to the plan. */
export function noteReads(plan: Plan, { calls, results }: Batch): Plan {
  const reads = calls.flatMap((call, index) => {
    const result = results[index];
    const given = argumentsOf(call);
    if (!result?.executed || !result.ok || given === null) return [];
    return [{ tool: call.name, arguments: given, result: actionResult(result, MAX_READ) }];
  });
  const done = [...plan.done];
  for (const read of reads) {
    if (done.length < MAX_READS) done.push({ id: `r${done.length + 1}`, ...read });
  }
  return { ...plan, done };
}

/** Maximum reads in a plan, and characters of each result. The planner saw all of them. */
const MAX_READS = 50;
const MAX_READ = 8_000;

function valuesOf({ done }: Plan): ReadonlyMap<string, Referred> {
  return new Map(done.map(({ id, result }) => [id, referred(result)]));
}

/** Whether a call only gathers information. This includes a question to a person. */
function isRead(state: RunState, call: ToolCall): boolean {
  const tool = findTool(state, call.name);
  const asks = call.verdict !== undefined;
  const finds = tool?.kind === undefined ? tool?.effect === 'read' : READING.has(tool.kind);
  return finds && !asks && refsIn(argumentsOf(call)).length === 0;
}

const READING: ReadonlySet<string> = new Set(['question', 'artifacts']);

/** Returns the arguments of a call; null if they are in a blob. */
function argumentsOf({ blob, arguments: json }: ToolCall): JsonObject | null {
  const value = blob === undefined ? parseJson(json) : undefined;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parsed from JSON
  return isObject(value) ? (value as JsonObject) : null;
}

function nextId({ actions }: Plan): string {
  return `a${actions.length + 1}`;
}

function toolNames({ actions }: Plan): readonly string[] {
  return actions.map(({ tool }) => tool);
}

function notedText({ id, asks }: PlannedAction): string {
  const consent = asks === undefined ? '' : ' The user will be asked to approve it.';
  return (
    `Added to the plan as action ${id}. It has NOT been executed and has no result yet.${consent} ` +
    `A later call can refer to its result: {"$ref":"${id}","path":"…"}.`
  );
}
