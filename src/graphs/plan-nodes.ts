import { InputError } from '../core/errors.js';
import type { AgentOptions } from '../agents/agent.js';
import { answerContract } from '../agents/agent-output.js';
import type { PlanNode } from '../core/graph/definition.js';
import type { OptionsOf } from './node-options.js';
import {
  computed,
  fieldOf,
  withOptionName,
  saveField,
  type BuiltNode,
  type Parts,
  type Site,
} from './node-parts.js';

const ATTEMPTS = 5;
const MAX_ACTIONS = 200;
const ACTION_MS = 30_000;

/** Builds a `decide` node, which chooses a tool or replies under a schema. */
export function decideParts(options: OptionsOf<'decide'>, site: Site): Parts {
  const { tools, toolChoice, output, attempts, save, message } = options;
  const common = {
    kind: 'decide',
    ...saveField(site, save, output ?? 'a text'),
    ...(message !== undefined && { message: computed(site, 'message', message) }),
  } as const;
  if (output === undefined) {
    if (attempts !== undefined) {
      throw new InputError(
        `${site.where}: attempts: expected \`output\` with it, got none; remove it`,
      );
    }
    return {
      kind: { ...common, ...(toolChoice === 'required' && { toolChoice }) },
      exits: null,
      optional: ['capped'],
      ...(tools !== undefined && { named: tools }),
    };
  }
  if (tools !== undefined) {
    throw new InputError(
      `${site.where}: tools: expected none with \`output\`, got some; remove one of the two`,
    );
  }
  if (toolChoice !== undefined) {
    throw new InputError(
      `${site.where}: toolChoice: expected none with \`output\`, got "${toolChoice}"; remove one of the two`,
    );
  }
  const contract = withOptionName(site.where, 'output', () => answerContract(site.where, output));
  const { definition } = contract;
  if (definition.type !== 'json')
    throw new InputError(`${site.where}: output: expected a zod type`);
  const { name, schema } = definition;
  return {
    kind: { ...common, output: { name, schema, attempts: attempts ?? ATTEMPTS } },
    exits: ['done'],
    optional: ['failed', 'capped'],
    output: contract,
  };
}

/** Builds a `confirm` node for a text or for a whole plan. */
export function confirmParts(options: OptionsOf<'confirm'>, site: Site): Parts {
  const { show, plan, expires } = options;
  if (show === undefined && plan === undefined) {
    throw new InputError(
      `${site.where}: expected \`show\` or \`plan\`, got none; specify what to confirm`,
    );
  }
  return {
    kind: {
      kind: 'confirm',
      show: show === undefined ? '' : computed(site, 'show', show),
      ...(expires !== undefined && { expiresMs: expires }),
      ...(plan !== undefined && { plan: fieldOf(site, 'plan', plan) }),
    },
    exits: [
      'yes',
      'no',
      ...(plan === undefined ? [] : ['some', 'edit']),
      ...(expires === undefined ? [] : ['expired']),
    ],
    optional: ['capped'],
  };
}

/** Builds a `plan` node. */
export function planParts(options: OptionsOf<'plan'>, site: Site): Parts {
  const { save, answer, planning, maxActions = MAX_ACTIONS, attempts = ATTEMPTS } = options;
  return {
    kind: {
      kind: 'plan',
      planning: planning ?? 'schema',
      save: fieldOf(site, 'save', save, 'an object'),
      ...(answer !== undefined && { answer: fieldOf(site, 'answer', answer, 'a text') }),
      maxActions,
      attempts,
    },
    exits: ['planned', 'answered'],
    optional: ['failed', 'capped'],
  };
}

/** Builds an `execute` node. */
export function executeParts(options: OptionsOf<'execute'>, site: Site): Parts {
  const {
    plan,
    save,
    atOnce = 5,
    timeout: timeoutMs = ACTION_MS,
    onFailedDependency = 'skip',
  } = options;
  return {
    kind: {
      kind: 'execute',
      plan: fieldOf(site, 'plan', plan),
      save: fieldOf(site, 'save', save, 'an object'),
      atOnce,
      timeoutMs,
      onFailedDependency,
    },
    exits: ['done', 'some_failed'],
    optional: ['capped'],
  };
}

/** Builds an `answer` node. */
export function answerParts(options: OptionsOf<'answer'>, site: Site): Parts {
  const { save, plan, results } = options;
  return {
    kind: {
      kind: 'answer',
      save: fieldOf(site, 'save', save, 'a text'),
      ...(plan !== undefined && { plan: fieldOf(site, 'plan', plan) }),
      ...(results !== undefined && { results: fieldOf(site, 'results', results) }),
    },
    exits: ['done'],
    optional: ['capped'],
  };
}

/** Returns how the graph plans; undefined if it does not. All its plan nodes share one prompt. */
export function planningOf(
  nodes: ReadonlyMap<string, BuiltNode>,
): PlanNode['planning'] | undefined {
  const kinds = [...nodes.values()].flatMap(({ kind }) => (kind.kind === 'plan' ? [kind] : []));
  return kinds[0]?.planning;
}

/** Adds the instructions for planning; a template gets them verbatim. */
export function withPlanning(
  given: AgentOptions['instructions'],
  planning: PlanNode['planning'] | undefined,
): AgentOptions['instructions'] {
  const added = planInstructions(planning);
  return typeof given === 'string' && added !== '' ? `${given}\n\n${added}` : given;
}

/** `key`: the property of a reference that holds the id of the action. */
const references = (key: string): string =>
  `Where an argument needs the result of an earlier action, write {"${key}":"a1","path":"data.id"} in its ` +
  'place. `path` selects a part of the result; leave it empty to use the whole result. Never guess an id that a ' +
  'result will have. Refer only to actions of this plan, and only to earlier ones.';

const SCHEMA =
  'You plan, and the system executes. When you are asked for a plan, answer only with JSON such as ' +
  '{"actions":[{"id":"a1","tool":"NAME","arguments":{…},"after":[]}]}. Each action is one tool call ' +
  "with arguments that match the tool's schema. List in `after` the actions that must finish first, in " +
  'addition to those that the arguments refer to; independent actions run in parallel. If there is ' +
  'nothing to do, answer {"actions":[],"answer":"…"} with your answer to the user.';

const CATALOG =
  'You plan, and the system executes. Find the tools that you need, then call each with invoke_tool, in ' +
  'the order in which the actions should happen. Read-only calls are executed immediately, and you get ' +
  'their results as r1, r2, …, in the order of the calls. All other calls are added to the plan and have ' +
  'no result yet. When the plan is complete, say in one sentence what it does. If there is nothing to do, answer the user.';

const CONSENT =
  'The system asks for approval where needed. Plan what was requested, and do not ask for consent yourself.';

/** Returns the planning instructions for a graph's model; empty for a graph without a plan. */
function planInstructions(planning: PlanNode['planning'] | undefined): string {
  if (planning === undefined) return '';
  const isSchema = planning === 'schema';
  return [isSchema ? SCHEMA : CATALOG, references(isSchema ? 'from' : '$ref'), CONSENT].join('\n');
}
