import type { PlanNode } from '../core/graph/definition.js';

const REFERENCES =
  'Where an argument needs the result of an earlier action, write {"$ref":"a1","path":"data.id"} in its ' +
  'place: `path` leads into the result, and without it the whole result is meant. Never guess an id that a ' +
  'result will have. Refer only to actions of this plan, and only to earlier ones.';

const SCHEMA =
  'You plan, and others execute. When you are asked for a plan, answer only with JSON such as ' +
  '{"actions":[{"id":"a1","tool":"NAME","arguments":{…},"after":[]}]}. Each action is one call of a tool, ' +
  'with arguments under its schema. List under `after` the actions that have to end first, beside those ' +
  'that the arguments refer to; what does not depend on each other is done at the same time. If there is ' +
  'nothing to do, answer {"actions":[],"answer":"…"} with your answer to the user.';

const CATALOG =
  'You plan, and others execute. Find the tools that you need, then call each with invoke_tool, in the ' +
  'order in which they should happen. What only reads is executed at once, and you get its result. All ' +
  'else is noted as an action of the plan and has no result yet. When the plan is complete, say in one ' +
  'sentence what it does. If there is nothing to do, answer the user.';

const CONSENT =
  'Whether the user has to agree is decided by the system: plan what was asked, and do not ask for consent.';

/** Returns what a graph's model is told about planning; empty for a graph without a plan. */
export function planInstructions(planning: PlanNode['planning'] | undefined): string {
  if (planning === undefined) return '';
  return [planning === 'schema' ? SCHEMA : CATALOG, REFERENCES, CONSENT].join('\n');
}
