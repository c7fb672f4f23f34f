import type { PlanNode } from '../../core/graph/definition.js';
import { isObject, type Json, type JsonObject } from '../../core/json.js';
import {
  askingProblem,
  planFaults,
  planValue,
  type PlanFault,
  type PlannedAction,
} from '../../core/plan/plan.js';
import { refsIn } from '../../core/plan/references.js';
import type { ParsedAnswer } from '../../core/reply.js';
import { extractJson } from '../../output/extract-json.js';
import type { RuleContext } from '../requests/evaluate-call.js';
import { normalizedPlan } from './plan-format.js';
import { checkCall } from './read-call.js';
import { parsedForm } from './record-calls.js';

interface PlanSource {
  readonly node: PlanNode;
  readonly ruleContext: RuleContext;
  /** The author's code has frozen a worker, so it is not called again. */
  readonly isGivenUp: boolean;
}

/** Maximum faults in one answer to the planner, and characters of all of them. */
const MAX_FAULTS = 30;
const MAX_CHARACTERS = 16_000;

/**
 * Reads a whole plan from a model's reply, and checks it before anything is executed: its form,
 * each action's arguments against the tool's schema, and the rules. Never rejects: the reply is
 * paid for.
 */
export async function readPlan(
  text: string,
  { node, ruleContext, isGivenUp }: PlanSource,
): Promise<ParsedAnswer> {
  const extracted = extractJson(text);
  if (!extracted.ok) return extracted;
  const { definition } = ruleContext.pinned;
  const value = normalizedPlan(extracted.value, definition.tools);
  const tools = definition.tools.map(({ name }) => name);
  const unsound = planFaults(value, { tools, maxActions: node.maxActions });
  if (unsound.some(({ index }) => index === undefined)) return refused(unsound);
  const { actions, answer } = readFields(value);
  // Each reply of the planner is paid for, so it learns all faults from one answer.
  const checked = await Promise.all(
    actions.map(async (action, index) =>
      unsound.some((fault) => fault.index === index)
        ? null
        : await checkAction(action, { ruleContext, isGivenUp }),
    ),
  );
  const faults = checked.flatMap((one, index): readonly PlanFault[] =>
    typeof one === 'string' ? [{ index, problem: one }] : [],
  );
  if (unsound.length + faults.length > 0) return refused([...unsound, ...faults]);
  const planned = checked.flatMap((one) => (typeof one === 'string' || one === null ? [] : [one]));
  const tooMany = askingProblem(planned);
  if (tooMany !== null) return { ok: false, problem: tooMany };
  const plan = {
    actions: planned,
    done: [],
    asks: planned.some(({ asks }) => asks !== undefined),
    ...(answer !== undefined && { answer }),
  };
  return { ok: true, output: planValue(plan) };
}

/** Returns the answer to a plan with these faults, in the order of its actions. */
function refused(faults: readonly PlanFault[]): ParsedAnswer {
  const sorted = faults.toSorted((one, other) => (one.index ?? -1) - (other.index ?? -1));
  let left = MAX_CHARACTERS;
  const lines = sorted.slice(0, MAX_FAULTS).flatMap(({ problem }) => {
    left -= problem.length;
    return left < 0 && left + problem.length < MAX_CHARACTERS ? [] : [problem];
  });
  const more = sorted.length - lines.length;
  const rest = more > 0 ? [`… and ${more} more faults`] : [];
  return { ok: false, problem: [...lines, ...rest].join('\n') };
}

/** Returns only the known fields of a plan whose form has been checked. */
function readFields(value: Json): {
  readonly actions: readonly PlannedAction[];
  readonly answer?: string;
} {
  const { actions, answer } = isObject(value) ? value : {};
  const list: readonly unknown[] = Array.isArray(actions) ? actions : [];
  const objects = list.map((one) => (isObject(one) ? one : {}));
  return {
    actions: objects.map(({ id, tool, arguments: given, after }) => ({
      id: String(id),
      tool: String(tool),
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `planProblem` has checked it
      arguments: given as JsonObject,
      ...(Array.isArray(after) && after.length > 0 && { after: after.map(String) }),
    })),
    ...(typeof answer === 'string' && answer !== '' && { answer }),
  };
}

/** Returns the action with its description and the rules' verdict, or the problem with it. */
async function checkAction(
  action: PlannedAction,
  options: Pick<PlanSource, 'ruleContext' | 'isGivenUp'>,
): Promise<PlannedAction | string> {
  const { id, tool, arguments: given } = action;
  const known = options.ruleContext.pinned.definition.tools.find(({ name }) => name === tool);
  if (known?.kind === 'wait') return `action ${id}: a plan cannot wait; omit it`;
  const { problem, summary, verdict, parsedCanonical } = await checkCall(tool, given, options);
  if (problem !== undefined) return `action ${id}: ${problem.message}`;
  if (verdict?.then === 'deny') return `action ${id}: it is not allowed: ${verdict.why}`;
  return {
    ...action,
    ...(parsedCanonical !== undefined && { parsed: parsedForm(parsedCanonical) }),
    ...(summary !== undefined && { shown: summary }),
    ...(verdict && { asks: verdict }),
    ...(refsIn(given).length > 0 && { late: true }),
  };
}
