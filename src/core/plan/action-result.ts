import type { CallResult } from '../calls/call-result.js';
import { errorIn } from '../graph/error-in.js';
import { cutValue } from './cut-value.js';
import type { ActionResult } from './plan.js';
import type { Referred } from './references.js';

const MAX_ERROR = 1_000;

/** Returns an action's result, with its value cut to this many characters; default: not cut. */
export function actionResult(result: CallResult, characters = Infinity): ActionResult {
  const { ok, output, text, artifactName } = result;
  if (!ok) {
    const { type, message } = errorIn(text);
    return { ok, error: { type, message: message.slice(0, MAX_ERROR) } };
  }
  const value = cutValue(output ?? text, characters);
  // The value of a tool that ends a turn is used directly, even if it also has an artifact.
  const isArtifact = output === undefined && artifactName !== undefined;
  return { ok, value, ...(isArtifact && { artifact: artifactName }) };
}

/**
 * Returns the target of a reference to the action. `earlier`: null is then all that a failed action
 * has, so that a path into it leads nowhere; see `keepsEarlierMeaning`.
 */
export function referred(result: ActionResult, earlier = false): Referred {
  if (!result.ok) return earlier ? { value: null } : { failed: true };
  const { value, artifact } = result;
  return artifact === undefined ? { value } : { artifact };
}
