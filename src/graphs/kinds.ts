import { InputError } from '../core/errors.js';
import { show } from '../core/text/format-value.js';
import { isObject } from '../core/json.js';
import type { KindName } from './build-node.js';
import { NODE_OPTIONS } from './node-options.js';
import type { GraphKinds, NodeSpec } from './node-spec.js';
import type { z } from 'zod';

const made = new WeakSet<object>();

/**
 * Returns the function that makes nodes of one kind. The options are checked once the nodes have
 * names.
 */
function kindOf(kind: KindName): (options: object) => NodeSpec<never, never> {
  return (options) => {
    const spec = Object.freeze({ kind, options });
    made.add(spec);
    return spec;
  };
}

const KINDS = Object.freeze({
  run: kindOf('run'),
  route: kindOf('route'),
  choose: kindOf('choose'),
  agent: kindOf('agent'),
  graph: kindOf('graph'),
  decide: kindOf('decide'),
  tool: kindOf('tool'),
  each: kindOf('each'),
  confirm: kindOf('confirm'),
  plan: kindOf('plan'),
  execute: kindOf('execute'),
  answer: kindOf('answer'),
});

/**
 * Returns the kinds that `nodes` receives. They are the same for all graphs; only their types
 * depend on the state.
 */
export function kindsOf<Shape extends z.ZodObject>(): GraphKinds<Shape> {
  return KINDS;
}

/** Returns a node's kind and options. Throws an `InputError` if no kind made the value. */
export function specOf(
  where: string,
  spec: unknown,
): { readonly kind: KindName; readonly options: object } {
  if (isObject(spec) && made.has(spec)) {
    const { kind, options } = spec;
    if (isKind(kind) && isObject(options)) return { kind, options };
    throw new InputError(
      `${where}: expected ${String(kind)}({…}), got ${String(kind)}(${show(options)})`,
    );
  }
  const kinds = Object.keys(NODE_OPTIONS).join(', ');
  throw new InputError(`${where}: expected a node made by one of ${kinds}, got ${show(spec)}`);
}

function isKind(kind: unknown): kind is KindName {
  return typeof kind === 'string' && Object.hasOwn(NODE_OPTIONS, kind);
}
