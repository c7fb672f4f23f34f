import { canonicalJson } from '../../core/json.js';
import type { JsonObject } from '../../core/json.js';

/** A call that a plan wants made. */
export interface DemoCall {
  readonly tool: string;
  readonly input: JsonObject;
}

export interface DemoResult {
  readonly ok: boolean;
  /** What the tool said, or why there is no result. */
  readonly text: string;
}

/** A call of this turn with what became of it. */
export interface SeenCall extends DemoCall {
  readonly result: DemoResult;
  /** The engine did not execute it, e.g. because only one call of a message is. */
  readonly isSkipped: boolean;
}

/**
 * How a question is answered: yields the calls it needs next, is given their results in the same order,
 * returns the answer. It must not depend on anything else: it is replayed from its start each time.
 */
export type DemoPlan = Generator<readonly DemoCall[], string, readonly DemoResult[]>;

export type DemoDecision =
  | { readonly type: 'call'; readonly calls: readonly DemoCall[] }
  | { readonly type: 'answer'; readonly text: string };

/** A skipped call is asked for this often before it counts as failed. */
const MAX_ASKED = 3;

/**
 * Runs a plan over what was seen so far, up to the first calls that are not there yet. Where no calls
 * are permitted, the plan is told so in their place and answers from what it has.
 */
export function replay(
  plan: DemoPlan,
  world: {
    readonly seen: readonly SeenCall[];
    readonly tools: ReadonlySet<string>;
    readonly mayCall: boolean;
  },
): DemoDecision {
  for (let step = plan.next(); ;) {
    if (step.done === true) return { type: 'answer', text: step.value };
    const results = step.value.map((call) => resultOf(call, world));
    const missing = step.value.filter((_call, index) => results[index] === undefined);
    if (missing.length > 0) return { type: 'call', calls: missing };
    step = plan.next(results.filter((result) => result !== undefined));
  }
}

function resultOf(call: DemoCall, world: Parameters<typeof replay>[1]): DemoResult | undefined {
  if (!world.tools.has(call.tool)) {
    return { ok: false, text: `this agent has no tool ${call.tool}` };
  }
  const same = world.seen.filter((seen) => isSame(seen, call));
  const executed = same.findLast(({ isSkipped }) => !isSkipped) ?? same[MAX_ASKED - 1];
  if (executed) return executed.result;
  return world.mayCall
    ? undefined
    : { ok: false, text: 'not looked at: no more calls are permitted' };
}

function isSame(a: DemoCall, b: DemoCall): boolean {
  return a.tool === b.tool && canonicalJson(a.input) === canonicalJson(b.input);
}
