import { answerContract } from '../agents/agent-output.js';
import type { OptionsOf } from './node-options.js';
import { computed, fieldOf, inOwnWords, saved, type Parts, type Site } from './node-parts.js';

const ATTEMPTS = 5;
const MAX_ACTIONS = 200;
const ACTION_MS = 30_000;

/** Builds a `decide` node: free to choose a tool, or with a reply under a schema. */
export function decideParts(options: OptionsOf<'decide'>, site: Site): Parts {
  const { tools, output, attempts, save } = options;
  if (output === undefined) {
    if (attempts !== undefined) {
      throw new Error(
        `${site.where}: attempts: expected \`output\` beside it, got none; remove it`,
      );
    }
    return {
      kind: { kind: 'decide', ...saved(site, save) },
      exits: null,
      optional: ['capped'],
      ...(tools !== undefined && { named: tools }),
    };
  }
  if (tools !== undefined) {
    throw new Error(
      `${site.where}: tools: a node with an \`output\` calls none; remove one of the two`,
    );
  }
  const contract = inOwnWords(site.where, 'output', () => answerContract(site.where, output));
  const { definition } = contract;
  if (definition.type !== 'json') throw new Error(`${site.where}: output: expected a zod type`);
  const { name, schema } = definition;
  return {
    kind: {
      kind: 'decide',
      ...saved(site, save),
      output: { name, schema, attempts: attempts ?? ATTEMPTS },
    },
    exits: ['done'],
    optional: ['failed', 'capped'],
    output: contract,
  };
}

/** Builds a `confirm` node: about a text, or about a whole plan. */
export function confirmParts(options: OptionsOf<'confirm'>, site: Site): Parts {
  const { show, plan, expires } = options;
  if (show === undefined && plan === undefined) {
    throw new Error(`${site.where}: expected \`show\` or \`plan\`, got none; say what to confirm`);
  }
  return {
    kind: {
      kind: 'confirm',
      show: show === undefined ? '' : computed(site, 'show', show),
      ...(expires !== undefined && { expiresMs: expires }),
      ...(plan !== undefined && { plan: fieldOf(site, 'plan', plan) }),
    },
    exits: [
      ...['yes', 'no'],
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
      save: fieldOf(site, 'save', save),
      ...(answer !== undefined && { answer: fieldOf(site, 'answer', answer) }),
      maxActions,
      attempts,
    },
    exits: ['planned', 'answered'],
    optional: ['failed', 'capped'],
  };
}

/** Builds an `execute` node. */
export function executeParts(options: OptionsOf<'execute'>, site: Site): Parts {
  const { plan, save, atOnce = 5, timeoutMs = ACTION_MS, onFailedDependency = 'skip' } = options;
  return {
    kind: {
      kind: 'execute',
      plan: fieldOf(site, 'plan', plan),
      save: fieldOf(site, 'save', save),
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
      save: fieldOf(site, 'save', save),
      ...(plan !== undefined && { plan: fieldOf(site, 'plan', plan) }),
      ...(results !== undefined && { results: fieldOf(site, 'results', results) }),
    },
    exits: ['done'],
    optional: ['capped'],
  };
}
