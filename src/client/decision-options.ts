import { z } from 'zod';
import type { DecisionOptions } from '../updates/control.js';
import type { ResolveOptions } from '../updates/decide.js';
import { checkOptions, expectedHidden, type OptionSchemas } from '../validation/check-options.js';
import type { SendOptions } from './client-types.js';
import type { CancelOptions } from './control-methods.js';

/** The values are checked where they are used. */
const checkedLater = z.unknown().optional();

const decision = {
  by: checkedLater,
  within: checkedLater,
  signal: checkedLater,
} satisfies OptionSchemas<DecisionOptions>;
const anyDecision = z.strictObject(decision);

const decisionOptions = {
  send: z.strictObject({
    ...decision,
    start: checkedLater,
  } satisfies OptionSchemas<SendOptions>),
  pause: anyDecision,
  resume: anyDecision,
  cancel: z.strictObject({
    ...decision,
    turn: expectedHidden(
      'true or the number of a turn, because only a turn is canceled with options',
      (turn) => turn === true || (Number.isInteger(turn) && Number(turn) > 0),
    ),
  } satisfies OptionSchemas<CancelOptions>),
  close: anyDecision,
  setLimits: anyDecision,
  resolve: z.strictObject({
    ...decision,
    id: checkedLater,
  } satisfies OptionSchemas<ResolveOptions>),
  revoke: anyDecision,
  undo: z.strictObject({ ...decision, call: checkedLater }),
} as const;

type DecisionMethod = keyof typeof decisionOptions;

/**
 * Returns a function that checks the options of a method and adds the client's actor, unless they
 * specify one. It throws an `InputError` for an option that the method does not have.
 */
export function withActor(by: string | undefined) {
  return <Options extends DecisionOptions>(
    method: DecisionMethod,
    options?: Options,
  ): Options | DecisionOptions => {
    if (options !== undefined) {
      checkOptions(method, { schema: decisionOptions[method], options });
    }
    return { ...(by && { by }), ...options };
  };
}
